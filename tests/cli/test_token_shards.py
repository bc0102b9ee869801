"""Tar shards of token ids (format: tokens): written and read by the package webdataset, and trained on as the same ids in one file."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import webdataset

from program import ROOT
from runs import Run, assert_same_run, assert_same_weights, assert_says, recipe, refused, train

CHAR_GPT = ROOT / "models" / "char_gpt.pt"
IDS = np.frombuffer((ROOT / "README.md").read_bytes()[:3000], np.uint8)
LENGTH = 16
# Where arrays end: one of a single id, one of none, and none at the end of a window.
ENDS = [1, 700, 700, 1501]


def write_shard(path: Path, arrays: list[np.ndarray], ending: str = "npy", **more: object) -> str:
    """The arrays as samples, with other members beside them."""
    with webdataset.TarWriter(str(path)) as shard:
        for number, array in enumerate(arrays):
            content = io.BytesIO()
            np.save(content, array)
            shard.write({"__key__": f"text/{number:04}", "json": {"words": number}, ending: content.getvalue(), **more})
    return str(path)


def source(path: Path | str, **more: object) -> dict:
    return {"format": "tokens", "path": str(path), "length": LENGTH, **more}


def settings(train_source: dict) -> dict:
    return recipe(CHAR_GPT, train={"steps": 4}, eval={"every_steps": 4}, data={"train": train_source, "eval": train_source})


def trained(folder: Path, own: dict, workers: int = 1) -> Run:
    return train(folder, settings(own), workers=workers)


@pytest.mark.parametrize("dtype", ["u1", "<u2", "<u4", "<i2", "<i4", "<i8"])
def test_the_ids_are_those_of_the_package(dtype: str, tmp_path: Path) -> None:
    """As it writes them, one array after another; windows overlap by a third and cross the ends of arrays."""
    with webdataset.TarWriter(str(tmp_path / "s.tar")) as shard:
        for number, array in enumerate(np.split(IDS.astype(dtype), ENDS)):
            shard.write({"__key__": f"text/{number:04}", "npy": array, "json": {"words": number}})
    read = webdataset.WebDataset(str(tmp_path / "s.tar"), shardshuffle=False).decode()
    ids = np.concatenate([sample["npy"] for sample in read])
    assert ids.dtype == np.dtype(dtype) and np.array_equal(ids, IDS)
    ids.astype("<u2").tofile(tmp_path / "ids.bin")
    ours, wanted = (trained(tmp_path / f"run-{name}", source(tmp_path / name, stride=11, vocabulary=256)) for name in ("s.tar", "ids.bin"))
    assert_same_weights(ours, wanted)
    assert list(ours.losses) == list(wanted.losses)
    assert ours.evaluation["loss"] == wanted.evaluation["loss"]
    assert ours.evaluation["samples"] == wanted.evaluation["samples"]


def test_shards_are_files(tmp_path: Path) -> None:
    """No window spans two of them, and any number of threads reads the same."""
    for shard, part in enumerate(np.split(IDS.astype("<u2"), [1200])):
        write_shard(tmp_path / f"s-{shard}.tar", np.split(part, [5, 333]), "tokens.npy")
        part.tofile(tmp_path / f"s-{shard}.bin")
    ours, wanted = (trained(tmp_path / f"run-{kind}", source(f"{tmp_path}/s-{{0..1}}.{kind}"), workers=2) for kind in ("tar", "bin"))
    assert_same_weights(ours, wanted)
    own = settings(source(f"{tmp_path}/s-{{0..1}}.tar"))
    own["data"]["threads"] = 3
    assert_same_run(train(tmp_path / "threads", own, workers=2), ours)


def two_types(path: Path) -> str:
    return write_shard(path, [IDS.astype("<u2"), IDS.astype("<i4")])


def compressed(path: Path) -> str:
    content = Path(write_shard(path, [IDS])).read_bytes()
    path.write_bytes(gzip.compress(content))
    return str(path)


def cut(path: Path) -> str:
    content = Path(write_shard(path, [IDS])).read_bytes()
    path.write_bytes(content[:5000])
    return str(path)


def no_array(path: Path) -> str:
    with webdataset.TarWriter(str(path)) as shard:
        shard.write({"__key__": "text/0000", "npy": b"words"})
    return str(path)


WRONG = {
    "compressed": (compressed, {}, ["s.tar': is compressed by gzip; decompress it first: gunzip -k FILE"]),
    "cut": (cut, {}, ["s.tar': truncated: member 'text/0000.npy' has 3128 bytes from byte "]),
    "floats": (lambda path: write_shard(path, [IDS, IDS.astype("<f4")]), {},
               ["s.tar', member 'text/0001.npy': elements of type '<f4'; expected ids of uint8, uint16, uint32, int16, int32 or int64"]),
    "two dimensions": (lambda path: write_shard(path, [IDS.reshape(-1, 2)]), {},
                       ["member 'text/0000.npy': an array of shape [1500, 2]; expected one dimension"]),
    "two types": (two_types, {}, ["member 'text/0001.npy': ids of int32, those of the members before it are uint16"]),
    "another type": (lambda path: write_shard(path, [IDS.astype("<i8")]), {"dtype": "uint16"},
                     ["member 'text/0000.npy': ids of int64, dtype says uint16"]),
    "no arrays": (lambda path: write_shard(path, [IDS], "bin"), {}, ["s.tar': has no arrays of ids, members whose names end in .npy"]),
    "no ids": (lambda path: write_shard(path, [IDS[:0]]), {}, ["s.tar': holds 0 bytes, too few for one sample"]),
    "two arrays": (lambda path: write_shard(path, [IDS], "a.npy", **{"b.npy": b"\x93NUMPY"}), {},
                   ["member 'text/0000.b.npy': the second array of its sample; expected one"]),
    "no array": (no_array, {}, ["member 'text/0000.npy': not a .npy array"]),
    "negative": (lambda path: write_shard(path, [np.full(100, -3, "<i4")]), {"vocabulary": 256},
                 ["s.tar': byte ", "id -3; a vocabulary of 256 has ids from 0 on"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_shards(what: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    write, more, texts = WRONG[what]
    path = write(tmp_path_factory.mktemp("wrong") / "s.tar")
    assert_says(refused(tmp_path, settings(source(path, **more))), *texts)


def test_the_format_of_images_names_that_of_ids(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    path = write_shard(tmp_path_factory.mktemp("wrong") / "s.tar", [IDS])
    message = refused(tmp_path, recipe(data={"train": {"format": "webdataset", "path": path}, "eval": None}))
    assert_says(message, "it has no image", "`format: tokens` reads shards of token ids")
