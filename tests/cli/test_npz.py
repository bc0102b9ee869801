"""npz files, as numpy writes them and as nobody should; and several files as one source."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from runs import assert_says, recipe, refused, train
from tensors import differing, write_safetensors

SAMPLES = 96


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {"x": random.normal(size=(SAMPLES, 1, 8, 8)).astype(np.float32), "y": random.integers(0, 10, SAMPLES)}


def settings(path: object, **changes: object) -> dict:
    source = {"format": "npz" if str([path]).rstrip("']").endswith("npz") else "safetensors", "path": path}
    return recipe(data={"train": source, "eval": None}, **changes)


@pytest.fixture
def wanted(tmp_path: Path):
    write_safetensors(tmp_path / "a.safetensors", arrays())
    return train(tmp_path / "wanted", settings(str(tmp_path / "a.safetensors")))


@pytest.mark.parametrize("kind", ["stored", "deflated", "fortran"])
def test_same_as_safetensors(kind: str, wanted, tmp_path: Path) -> None:
    """The same samples give the same bits."""
    data = arrays()
    if kind == "fortran":
        data["x"] = np.asfortranarray(data["x"])
    (np.savez if kind == "stored" else np.savez_compressed)(tmp_path / "a.npz", **data)
    run = train(tmp_path / "run", settings(str(tmp_path / "a.npz")))
    assert list(run.losses) == list(wanted.losses)
    assert not differing(run.weights, wanted.weights)


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_shards(kind: str, wanted, tmp_path: Path) -> None:
    """A list or a glob of files is one source, the samples in that order."""
    for number, (begin, end) in enumerate(((0, 10), (10, 11), (11, SAMPLES))):
        part = {name: array[begin:end] for name, array in arrays().items()}
        file = tmp_path / f"part-{number}.{kind}"
        np.savez(file, **part) if kind == "npz" else write_safetensors(file, part)
    files = [str(tmp_path / f"part-{number}.{kind}") for number in range(3)]
    for name, path in (("list", files), ("glob", str(tmp_path / f"part-?.{kind}")),
                       ("both", [files[0], str(tmp_path / f"part-[12].{kind}")])):
        run = train(tmp_path / f"run-{name}", settings(path))
        assert list(run.losses) == list(wanted.losses), name
    message = refused(tmp_path / "none", settings(str(tmp_path / f"pert-*.{kind}")))
    assert_says(message, "data.train", "pert-*", "matches no file")
    assert_says(refused(tmp_path / "empty", recipe(data={"train": {"format": kind, "path": []}})), "path")


@pytest.mark.parametrize("name", ["data [v2]", "set[12]", "a*b", "what?", "back\\slash"])
def test_the_folder_of_a_recipe_is_no_pattern(name: str, tmp_path: Path) -> None:
    """Only what the recipe writes; set1 beside set[12] is another folder."""
    data = arrays()
    for folder, shift in ((name, 0), ("set1", 1), ("axb", 1)):
        (tmp_path / folder / "x[1]").mkdir(parents=True)
        np.savez(tmp_path / folder / "part-1.npz", x=data["x"] + shift, y=data["y"])
        np.savez(tmp_path / folder / "x[1]" / "part-1.npz", x=data["x"] + shift, y=data["y"])
    wanted = train(tmp_path / "wanted", settings(str(tmp_path / name / "part-1.npz")))
    for path in ("part-*.npz", "x[1]/part-?.npz", "*/part-1.npz"):
        run = train(tmp_path / name, settings(path))
        assert list(run.losses) == list(wanted.losses), path
        shutil.rmtree(run.folder)


def test_entries_that_lie_over_one_another(tmp_path: Path) -> None:
    """A small archive that would be inflated without bound."""
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((64, 1, 8, 8), np.float32), y=np.zeros(64, np.int64))
    raw = (tmp_path / "a.npz").read_bytes()
    begin = raw.index(b"PK\x01\x02")
    entry = raw[begin:raw.index(b"PK\x01\x02", begin + 1)]
    many = [entry.replace(b"x.npy", b"%05d" % number) for number in range(5000)]
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(many), len(many), len(entry) * len(many), begin, 0)
    (tmp_path / "many.npz").write_bytes(raw[:begin] + b"".join(many) + end)
    message = refused(tmp_path / "run", settings(str(tmp_path / "many.npz")))
    assert_says(message, "many.npz': not a .npz archive: damaged: entries '0", "lie over one another")


def test_many_arrays_make_a_short_message(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{f"a{number}": np.zeros(2, np.float32) for number in range(3000)})
    message = refused(tmp_path / "run", settings(str(tmp_path / "a.npz")))
    assert_says(message, "data.train has no field 'x'", "and 2980 more")
    assert len(message) < 500


def test_shards_that_differ(tmp_path: Path) -> None:
    data = arrays()
    np.savez(tmp_path / "0.npz", **data)
    np.savez(tmp_path / "1.npz", x=data["x"], y=data["y"].astype(np.int32))
    message = refused(tmp_path / "run", settings([str(tmp_path / "0.npz"), str(tmp_path / "1.npz")]))
    assert_says(message, "1.npz", "y int32[]", "0.npz", "y int64[]")


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"])
def test_element_types(dtype: str, tmp_path: Path) -> None:
    """Targets of every type that a loss takes: the file says what numpy says."""
    data = arrays()
    data["y"] = (data["y"] % 2).astype(dtype)
    np.savez(tmp_path / "a.npz", **data)
    loss = "cross_entropy" if np.dtype(dtype).kind in "iu" else "mse"
    message = ""
    if loss == "mse":  # ten outputs against one number: the message shows the type
        message = refused(tmp_path / "run", settings(str(tmp_path / "a.npz"), model={"loss": "mse"}))
        assert_says(message, f"{np.dtype(dtype).name}[8]")
    else:
        train(tmp_path / "run", settings(str(tmp_path / "a.npz")))


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def archive(path: Path, entries: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)


def npy_of(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


ONE = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
HOSTILE = {
    "not-zip": (b"no archive", ["is a text, not a NumPy archive", "format: csv"]),
    "empty": (b"", ["not a .npz archive"]),
    "big-endian": ({"x.npy": npy_of(np.ones(4, ">f4"))}, ["array 'x'", "big-endian", "astype('<f4')"]),
    "complex": ({"x.npy": npy_of(np.ones(4, "c8"))}, ["array 'x'", "'<c8' are not supported", "float32"]),
    "text": ({"x.npy": npy_of(np.array(["a", "b"]))}, ["'<U1' are not supported"]),
    "records": ({"x.npy": npy_of(np.zeros(2, [("a", "f4")]))}, ["records"]),
    "short": ({"x.npy": npy(ONE, b"1234")}, ["asks for 16 bytes, it has 4"]),
    "long": ({"x.npy": npy(ONE, b"1234" * 5)}, ["asks for 16 bytes, it has 20"]),
    "huge": ({"x.npy": npy(ONE.replace("4,", "4611686018427387904, 4"))}, ["too large"]),
    "negative": ({"x.npy": npy(ONE.replace("4,", "-4,"))}, ["no count"]),
    "no-shape": ({"x.npy": npy("{'descr': '<f4', 'fortran_order': False, }")}, ["lacks"]),
    "no-magic": ({"x.npy": b"hello"}, ["not a .npy array"]),
    "version": ({"x.npy": npy(ONE, version=9)}, ["version 9"]),
    "other-entry": ({"x.npy": npy_of(np.ones(4)), "readme.txt": b"hi"}, ["readme.txt", "nothing else"]),
    "no-entries": ({}, ["holds no tensors"]),
    "scalar": ({"x.npy": npy_of(np.float32(1))}, ["shape []"]),
    "unequal": ({"x.npy": npy_of(np.ones(4)), "y.npy": npy_of(np.ones(5))}, ["[4]", "[5]"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name: str, tmp_path: Path) -> None:
    content, texts = HOSTILE[name]
    path = tmp_path / "bad.npz"
    path.write_bytes(content) if isinstance(content, bytes) else archive(path, content)
    assert_says(refused(tmp_path / "run", settings(str(path))), "data.train", "bad.npz", *texts)


def test_damage(tmp_path: Path) -> None:
    """A flipped bit of the data, and a file cut short."""
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays())
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 1
    for content in (bytes(flipped), whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(content)
        assert_says(refused(tmp_path / "run", settings(str(path))), "bad.npz")


def test_duplicate_names(tmp_path: Path) -> None:
    with pytest.warns(UserWarning), zipfile.ZipFile(tmp_path / "bad.npz", "w") as file:
        for _ in range(2):
            file.writestr("x.npy", npy_of(np.ones(4)))
    assert_says(refused(tmp_path / "run", settings(str(tmp_path / "bad.npz"))), "entries 'x.npy' and 'x.npy' have one name")
