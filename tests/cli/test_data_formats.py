"""Files as others write them, the same data in each: MNIST's, token ids of nanoGPT and llm.c, text."""

from __future__ import annotations

import gzip
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from idx_files import idx
from program import ROOT
from runs import Run, assert_same_weights, assert_says, recipe, refused, train
from tensors import write_safetensors

CHAR_GPT = ROOT / "models" / "char_gpt.pt"
STEPS = 20
LENGTH = 16
TEXT = (ROOT / "README.md").read_bytes()[:4000]


def images() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.integers(0, 256, (96, 8, 8), np.uint8), random.integers(0, 10, 96).astype(np.uint8)


def trained(folder: Path, source: dict, model: Path | None = None) -> Run:
    settings = recipe(*([model] if model else []), train={"steps": STEPS if model is None else 4},
                      data={"train": source, "eval": source})
    return train(folder, settings)


def test_idx_is_the_same_as_arrays(tmp_path: Path) -> None:
    pixels, labels = images()
    arrays = {"x": pixels[:, None].astype(np.float32) / np.float32(255), "y": labels.astype(np.int64)}
    write_safetensors(tmp_path / "a.safetensors", arrays)
    np.savez(tmp_path / "a.npz", **arrays)
    (tmp_path / "images-idx3-ubyte").write_bytes(idx(pixels))
    (tmp_path / "labels-idx1-ubyte").write_bytes(idx(labels))
    (tmp_path / "images").write_bytes(gzip.compress(idx(pixels)))
    (tmp_path / "labels").write_bytes(gzip.compress(idx(labels)))
    wanted = trained(tmp_path / "safetensors", {"format": "safetensors", "path": str(tmp_path / "a.safetensors")})
    for name, source in {
        "npz": {"format": "npz", "path": str(tmp_path / "a.npz")},
        "idx": {"format": "idx", "images": str(tmp_path / "images-idx3-ubyte"), "labels": str(tmp_path / "labels-idx1-ubyte")},
        "gz": {"format": "idx", "images": str(tmp_path / "images"), "labels": str(tmp_path / "labels")},
    }.items():
        run = trained(tmp_path / name, source)
        assert_same_weights(run, wanted)
        assert list(run.losses) == list(wanted.losses)


def llm_c(magic: int, version: int, ids: np.ndarray) -> bytes:
    return struct.pack("<256i", magic, version, len(ids), *[0] * 253) + ids.tobytes()


def test_tokens_and_text_are_the_same_as_arrays(tmp_path: Path) -> None:
    """Windows that overlap by half; the bytes of a text as ids."""
    ids = np.frombuffer(TEXT, np.uint8)
    starts = range(0, len(ids) - LENGTH, LENGTH // 2)
    write_safetensors(tmp_path / "a.safetensors", {
        name: np.stack([ids[start + shift : start + shift + LENGTH] for start in starts]).astype(np.int64)
        for name, shift in (("x", 0), ("y", 1))})
    files = {"text": TEXT, "nanogpt": ids.astype("<u2").tobytes(), "uint32": ids.astype("<u4").tobytes(),
             "gpt2": llm_c(20240520, 1, ids.astype("<u2")), "llama3": llm_c(20240801, 7, ids.astype("<u4"))}
    for name, content in files.items():
        (tmp_path / f"{name}.bin").write_bytes(content)
    wanted = trained(tmp_path / "wanted", {"format": "safetensors", "path": str(tmp_path / "a.safetensors")}, CHAR_GPT)
    for name in files:
        source = {"format": "text" if name == "text" else "tokens", "path": str(tmp_path / f"{name}.bin"), "length": LENGTH,
                  "stride": LENGTH // 2, **({"dtype": name} if name == "uint32" else {})}
        run = trained(tmp_path / name, source, CHAR_GPT)
        assert_same_weights(run, wanted)
        assert list(run.losses) == list(wanted.losses)


@pytest.mark.parametrize(("stored", "dtype", "said"), [
    ("<u4", None, "ids of 32 bits are; dtype: uint32 reads them"), ("<i8", None, "ids of 64 bits are; numpy.fromfile"),
    ("<u4", "uint16", "ids of 32 bits are"), ("<u8", "uint32", "ids of 64 bits are")])
def test_ids_that_are_wider_than_they_are_read(stored: str, dtype: str | None, said: str, tmp_path: Path) -> None:
    """Refused where nobody gave a type, else said."""
    (np.arange(400) % 97).astype(stored).tofile(tmp_path / "ids.bin")
    source = {"format": "tokens", "path": str(tmp_path / "ids.bin"), "length": 8, **({"dtype": dtype} if dtype else {})}
    settings = recipe(CHAR_GPT, data={"train": source, "eval": None, "batch_size": 2}, train={"steps": 1})
    if dtype is None:
        assert_says(refused(tmp_path / "run", settings), "ids.bin': read as uint16, its first ids are followed by zeros, as ", said)
    else:
        assert_says(train(tmp_path / "run", settings).ended[0].out, "note     data.train: '", f"ids.bin': read as {dtype}", said)


def test_an_id_beyond_the_table(tmp_path: Path) -> None:
    """In the first batch, and later: the sample is named."""
    ids = (np.arange(400) % 97).astype("<u2")
    ids[8 * 20 + 3] = 300
    (tmp_path / "ids.bin").write_bytes(ids.tobytes())
    source = {"format": "tokens", "path": str(tmp_path / "ids.bin"), "length": 8}
    own = recipe(CHAR_GPT, data={"train": source, "eval": None, "batch_size": 4, "shuffle": False}, train={"steps": 10})
    assert_says(refused(tmp_path / "run", own), f"data.train: sample 20 ('{tmp_path / 'ids.bin'}'), counted from 0: the target has class 300")
    ids[:] = 300
    (tmp_path / "ids.bin").write_bytes(ids.tobytes())
    assert_says(refused(tmp_path / "all", own), "index out of range", "The largest number in field 'x' of the batch is 300: sample 0")


@pytest.mark.parametrize("key", ["images", "labels"])
def test_an_idx_file_is_no_output(key: str, tmp_path: Path) -> None:
    """As any file that is read."""
    pixels, labels = images()
    source = {"format": "idx", "images": str(tmp_path / "images"), "labels": str(tmp_path / "labels")}
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "images").write_bytes(idx(pixels))
    (tmp_path / "labels").write_bytes(idx(labels))
    (tmp_path / key).rename(folder / "model.safetensors")
    source[key] = str(folder / "model.safetensors")
    before = (folder / "model.safetensors").read_bytes()
    settings = recipe(data={"train": source, "eval": None}, output=str(folder))
    message = refused(tmp_path / "recipe", settings)
    assert_says(message, "model.safetensors")
    assert (folder / "model.safetensors").read_bytes() == before


WRONG = {
    "labels of another count": ({"format": "idx", "images": "images", "labels": "few"},
                                ["data.train", "images' has 96 images", "few' has 95 labels"]),
    "a file that is no idx": ({"format": "idx", "images": "text", "labels": "labels"}, ["text': not an IDX file", "'23 20 64 65'"]),
    "a bomb": ({"format": "idx", "images": "bomb", "labels": "labels"}, ["bomb'", "400000000000 bytes", "cannot hold as much"]),
    "no length": ({"format": "text", "path": "text"}, ["data.train.length", "missing; expected an integer >= 1"]),
    "no samples": ({"format": "text", "path": "text", "length": 4000}, ["text': holds 4000 bytes, too few for one sample"]),
    "text that is compressed": ({"format": "text", "path": "labels.gz", "length": 8}, ["labels.gz'", "gunzip -k"]),
    "ids of another type": ({"format": "tokens", "path": "gpt2", "length": 8, "dtype": "uint32"},
                            ["gpt2': byte 0: its header says uint16, dtype says uint32"]),
    "ids of no type": ({"format": "tokens", "path": "gpt2", "length": 8, "dtype": "int32"}, ["data.train.dtype", "uint16, uint32"]),
    "no header": ({"format": "tokens", "path": "text", "length": 8, "header": "llm.c"}, ["text': byte 0: no header of llm.c"]),
    "an id beyond the vocabulary": ({"format": "tokens", "path": "gpt2", "length": 8, "vocabulary": 11},
                                    ["gpt2': byte ", "id 11; a vocabulary of 11 has ids below that"]),
    "another key": ({"format": "tokens", "path": "gpt2", "length": 8, "vocab": 11}, ["data.train.vocab", "vocabulary"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(name: str, tmp_path: Path) -> None:
    pixels, labels = images()
    data = {"images": idx(pixels), "labels": idx(labels), "few": idx(labels[1:]), "text": TEXT,
            "labels.gz": gzip.compress(idx(labels)), "bomb": gzip.compress(struct.pack(">4B3I", 0, 0, 8, 3, 10**5, 2000, 2000)),
            "gpt2": llm_c(20240520, 1, (np.arange(200) % 12).astype("<u2"))}
    for file, content in data.items():
        (tmp_path / file).write_bytes(content)
    source, texts = WRONG[name]
    source = {key: str(tmp_path / value) if key in ("images", "labels", "path") else value for key, value in source.items()}
    assert_says(refused(tmp_path / "run", recipe(CHAR_GPT, data={"train": source, "eval": None})), *texts)


# ---- files of another kind than the format ---------------------------------------------------------------------------

def write_kinds(folder: Path) -> None:
    import pickle

    import torch
    from safetensors.numpy import save_file

    arrays = {"x": np.ones((8, 2), np.float32), "y": np.zeros(8, np.int64)}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    np.savez(folder / "npz", **arrays)
    (folder / "npz.npz").rename(folder / "npz")
    np.save(folder / "npy.npy", arrays["x"])
    (folder / "npy.npy").rename(folder / "npy")
    save_file(arrays, folder / "safetensors")
    torch.save(tensors, folder / "torch")
    torch.save(tensors, folder / "old torch", _use_new_zipfile_serialization=False)
    (folder / "pickle").write_bytes(pickle.dumps(arrays))
    (folder / "model").write_bytes(CHAR_GPT.read_bytes())
    (folder / "text").write_bytes(TEXT)
    (folder / "gzip").write_bytes(gzip.compress(TEXT))
    with tarfile.open(folder / "tar", "w") as archive:
        archive.add(folder / "text", "text")
    (folder / "image").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (folder / "parquet").write_bytes(b"PAR1" + bytes(20) + b"PAR1")


# file -> what it is, what to do
KINDS = {
    "npz": ("is a NumPy archive (.npz)", "`format: npz` reads it"),
    "npy": ("is a single NumPy array (.npy)", "numpy.load reads it in Python, and numpy.savez"),
    "safetensors": ("is a safetensors file", "`format: safetensors` reads it"),
    "torch": ("is a file of torch.save", "torch.load reads it in Python, and numpy.savez"),
    "old torch": ("is a file of torch.save", "torch.load reads it in Python, and numpy.savez"),
    "pickle": ("is a Python pickle", "pickle.load reads it in Python, and numpy.savez"),
    "model": ("is a TorchScript model", "model.path is for models"),
    "text": ("is a text", "`format: csv` reads tables"),
    "gzip": ("is compressed by gzip", "gunzip decompresses it"),
    "tar": ("is a tar archive", "`format: webdataset` reads images and labels in it"),
    "image": ("is an image", "`format: images`"),
    "parquet": ("is a Parquet file", "pandas.read_parquet"),
}
READ_ALL_THE_SAME = {("npz", "npz"), ("safetensors", "safetensors"), ("csv", "text"), ("csv", "gzip")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", ["safetensors", "npz", "csv"])
def test_a_file_of_another_kind(format: str, kind: str, tmp_path: Path) -> None:
    if (format, kind) in READ_ALL_THE_SAME:
        pytest.skip("it is of that format")
    write_kinds(tmp_path)
    message = refused(tmp_path / "run", recipe(data={"train": {"format": format, "path": str(tmp_path / kind)}, "eval": None}))
    assert_says(message, f"data.train: '{tmp_path / kind}' {KINDS[kind][0]}, not ", KINDS[kind][1])
