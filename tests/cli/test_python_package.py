"""The Python package: its names, and save_data."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import decent_train
from program import ROOT
from runs import recipe, train, write_recipe
from scripts import run_script
from tensors import read_safetensors


# ---- names ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["save_data", "train", "Run", "Best", "Checkpoint", "Page", "compare", "Stopped",
                                  "TrainingError"])
def test_names(name: str) -> None:
    assert name in dir(decent_train) and name in decent_train.__all__
    thing = getattr(decent_train, name)
    assert thing.__name__ == name and inspect.getdoc(thing)


def test_a_name_that_it_has_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        decent_train.trian


def test_importing_it_imports_no_torch(tmp_path: Path) -> None:
    ended = run_script(tmp_path, "import sys, decent_train; decent_train.Run, decent_train.train, decent_train.compare; "
                                 "print([name for name in ('torch', 'numpy', 'pandas', 'IPython') if name in sys.modules])")
    assert (ended.code, ended.out.strip()) == (0, "[]"), ended


# ---- save_data: what it writes --------------------------------------------------------------------------------------

def array_of(dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (7, 3)).astype(dtype)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def test_arrays_of_every_dtype(tmp_path: Path) -> None:
    """As the package safetensors reads them; odd sizes, so that each begins where the one before ends."""
    arrays = {dtype: array_of(dtype) for dtype in DTYPES}
    assert decent_train.save_data(tmp_path / "all.safetensors", **arrays) == tmp_path / "all.safetensors"
    found = load_file(tmp_path / "all.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
    assert os.listdir(tmp_path) == ["all.safetensors"]


def test_what_counts_as_an_array(tmp_path: Path) -> None:
    import pandas

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    file = decent_train.save_data(
        str(tmp_path / "x.safetensors"), array=x, reversed=x[::-1], fortran=np.asfortranarray(x), big_endian=x.astype(">f4"),
        constant=np.broadcast_to(x, x.shape), tensor=torch.from_numpy(x), parameter=torch.nn.Parameter(torch.from_numpy(x)),
        strided=torch.from_numpy(x).t().contiguous().t(), half=torch.from_numpy(x).bfloat16(), rows=x.tolist(), ids=[1, 2, 3, 4],
        frame=pandas.DataFrame(x), series=pandas.Series([1.5, 2, 3, 4]), path=[True, False, True, True])
    from safetensors.torch import load_file as load_tensors

    found = load_tensors(file)
    same = ("array", "fortran", "big_endian", "constant", "tensor", "parameter", "strided", "rows", "frame")
    for name in same:
        assert found[name].dtype == torch.float32 and np.array_equal(found[name].numpy(), x), name
    assert np.array_equal(found["reversed"].numpy(), x[::-1])
    assert found["half"].dtype == torch.bfloat16 and torch.equal(found["half"].float(), torch.from_numpy(x))
    assert found["ids"].dtype == torch.int64 and found["ids"].tolist() == [1, 2, 3, 4]
    assert found["series"].dtype == torch.float64 and found["series"].tolist() == [1.5, 2, 3, 4]
    assert found["path"].dtype == torch.bool


def test_the_program_reads_it_as_it_reads_others(tmp_path: Path) -> None:
    """The same weights, bit for bit, as from a file of the tests' own writer."""
    from tensors import write_safetensors

    random = np.random.default_rng(0)
    arrays = {"x": random.random((64, 1, 8, 8), np.float32), "y": random.integers(0, 10, 64)}
    write_safetensors(tmp_path / "theirs.safetensors", arrays)
    decent_train.save_data(tmp_path / "ours.safetensors", **arrays)
    mlp = ROOT / "models" / "digits_mlp.pt"
    theirs = train(tmp_path / "theirs", recipe(mlp, tmp_path / "theirs.safetensors"))
    ours = train(tmp_path / "ours", recipe(mlp, tmp_path / "ours.safetensors"))
    assert all(np.array_equal(theirs.weights[name], ours.weights[name]) for name in theirs.weights)


def test_lists_without_numpy(tmp_path: Path) -> None:
    """NumPy is no dependency of torch."""
    ended = run_script(tmp_path, "import sys; sys.modules['numpy'] = None\n"
                                 "import decent_train, torch\n"
                                 "decent_train.save_data('x.safetensors', x=[[0.5], [1.5]], y=torch.tensor([1, 2]))")
    assert ended.code == 0, ended
    found = read_safetensors(tmp_path / "x.safetensors")
    assert found["x"].tolist() == [[0.5], [1.5]] and found["y"].tolist() == [1, 2]


def test_it_replaces_a_file_only_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.safetensors"
    decent_train.save_data(file, x=[1, 2])
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        decent_train.save_data(file, x=[1, 2, 3])
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["x.safetensors"]
    monkeypatch.undo()
    decent_train.save_data(file, x=[1, 2, 3])
    assert read_safetensors(file)["x"].tolist() == [1, 2, 3]


# ---- save_data: what it refuses -------------------------------------------------------------------------------------

X = np.zeros((3, 2), np.float32)


def with_nan(value: float, at: tuple[int, int]) -> np.ndarray:
    array = np.zeros((3, 2), np.float32)
    array[at] = value
    return array


REFUSED = {
    "another ending": ("x.npz", {"x": X}, ValueError, "must end in .safetensors"),
    "no arrays": ("x.safetensors", {}, ValueError, "no arrays were given"),
    "samples": ("x.safetensors", {"x": X, "y": [1, 2]}, ValueError, "array 'y' has 2 samples, and 'x' has 3"),
    "nan": ("x.safetensors", {"x": with_nan(np.nan, (2, 1))}, ValueError, "array 'x' holds nan at [2, 1]"),
    "infinity": ("x.safetensors", {"x": with_nan(-np.inf, (0, 1))}, ValueError, "array 'x' holds -inf at [0, 1]"),
    "empty": ("x.safetensors", {"x": np.zeros((0, 2))}, ValueError, "array 'x' is empty: its shape is [0, 2]"),
    "no elements": ("x.safetensors", {"x": np.zeros((4, 0))}, ValueError, "its shape is [4, 0]"),
    "a number": ("x.safetensors", {"x": 3.5}, ValueError, "array 'x' is a single number"),
    "objects": ("x.safetensors", {"x": np.array([1, None])}, TypeError, "array 'x' holds Python objects (dtype object)"),
    "texts": ("x.safetensors", {"x": np.array(["a"])}, TypeError, "array 'x' holds texts"),
    "dates": ("x.safetensors", {"x": np.array(["2020-01-01"], "M8[s]")}, TypeError, "array 'x' holds dates"),
    "list of texts": ("x.safetensors", {"x": ["a", "b"]}, TypeError, "array 'x' is not an array of numbers"),
    "ragged": ("x.safetensors", {"x": [[1, 2], [3]]}, TypeError, "array 'x' is not an array of numbers"),
    "too large": ("x.safetensors", {"x": [2 ** 70]}, TypeError, "array 'x' is not an array of numbers"),
    "complex": ("x.safetensors", {"x": np.zeros(3, complex)}, TypeError, "has elements of complex128; the program reads bool"),
    "unsigned": ("x.safetensors", {"x": np.zeros(3, np.uint16)}, TypeError, "array 'x' has elements of uint16"),
    "sparse": ("x.safetensors", {"x": torch.eye(3).to_sparse()}, TypeError, "to_dense()"),
    "meta": ("x.safetensors", {"x": torch.zeros(3, device="meta")}, TypeError, "array 'x'"),
    "none": ("x.safetensors", {"x": None}, TypeError, "array 'x' is not an array of numbers"),
    "reserved name": ("x.safetensors", {"__metadata__": X}, ValueError, "cannot be the name of an array"),
    "empty name": ("x.safetensors", {"": X}, ValueError, "'' cannot be the name"),
    "line break": ("x.safetensors", {"a\nb": X}, ValueError, "cannot be the name"),
    "folder": ("nowhere/x.safetensors", {"x": X}, FileNotFoundError, "there is no folder"),
    "a place without files": ("/proc/x.safetensors", {"x": X}, OSError, "'/proc/x.safetensors'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_save_data_refuses(case: str, tmp_path: Path) -> None:
    name, arrays, kind, message = REFUSED[case]
    with pytest.raises(kind, match=re.escape(message)):
        decent_train.save_data(tmp_path / name, **arrays)
    assert os.listdir(tmp_path) == []


def test_nan_far_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large arrays are searched in parts; the position is that in the whole."""
    monkeypatch.setattr(importlib.import_module("decent_train.data"), "_AT_ONCE", 6)
    x = np.zeros((100, 2, 2), np.float16)
    x[71, 1, 0] = np.nan
    with pytest.raises(ValueError, match=re.escape("array 'x' holds nan at [71, 1, 0]")):
        decent_train.save_data(tmp_path / "x.safetensors", x=x)


# ---- the reader of printed recipes ----------------------------------------------------------------------------------

TEXTS = ["plain", "with space", "1e-3", "null", "true", "a: b", "{x}", "[1, 2]", 'say "hi"', "back\\slash", "tab\tand\nline",
         "ümlaut", "${HOME}-like", "*.weight", "-dash", "#no comment", "\u2028", "\x7f", "", "..", "0x10", "2020-01-01"]


def test_recipes_as_they_are_printed(tmp_path: Path) -> None:
    """All that --print-config prints of the values given, in every configuration of the repository and with odd texts."""
    from decent_train.printed_recipe import read_printed
    from decent_train.program import run

    given = [text for text in TEXTS if text]
    changed = {"model": {"freeze": [text.replace("${", "$${") for text in given], "class_dim": -2},
               "optimizer": {"lr": 1e-6, "eps": 1e-30, "betas": [0.5, 0.75], "weight_decay": 3,
                             "param_groups": [{"match": "a, b: {c}", "lr_scale": 0.5, "weight_decay": None}]},
               "parallel": {"topology": {"phases": [[{"ranks": [0, 1], "weight": 0.25}], [{"ranks": [0], "weight": 1}]]}},
               "data": {"transforms": [{"normalize": {"mean": [0.5], "std": [2]}}, {"flip": 0.5}]},
               "train": {"steps": 7, "stop": {"metric": "loss", "patience": 3, "min_delta": 0.25}}}
    read = read_printed(run([write_recipe(tmp_path, recipe(**changed)), "--print-config"]))
    assert read["model"]["freeze"] == given and read["model"]["class_dim"] == -2
    assert read["output"] == str(tmp_path / "run")
    optimizer = read["optimizer"]
    assert (optimizer["lr"], optimizer["eps"], optimizer["betas"], optimizer["weight_decay"]) == (1e-6, 1e-30, [0.5, 0.75], 3)
    assert optimizer["param_groups"][0]["match"] == "a, b: {c}"
    assert read["parallel"]["topology"]["phases"][0] == [{"ranks": [0, 1], "weight": 0.25}]
    assert read["train"] == {"epochs": None, "steps": 7, "grad_accumulation": 1,
                             "stop": {"metric": "loss", "patience": 3, "min_delta": 0.25}}
    assert read["data"]["train"] == {"format": "builtin", "name": "digits", "split": "train", "limit": None, "holdout": None}
    normalize = read["data"]["transforms"][0]["normalize"]
    assert (normalize["mean"], normalize["std"], read["data"]["shuffle"]) == ([0.5], [2], True)


@pytest.mark.parametrize("config", sorted(path.name for path in (ROOT / "configs").glob("*.yaml")))
def test_printed_configurations(config: str) -> None:
    """PyYAML, which takes 1e-06 for a text and off for false, reads the same otherwise."""
    import yaml

    from decent_train.printed_recipe import read_printed
    from decent_train.program import run

    printed = run([ROOT / "configs" / config, "--print-config"])
    golden = numbers_read(yaml.safe_load(printed))
    assert golden["amp"].pop("dtype") in (False, "bf16")
    read = read_printed(printed)
    assert read["amp"].pop("dtype") in ("off", "bf16")
    assert read == golden


def numbers_read(value: object) -> object:
    if isinstance(value, dict):
        return {key: numbers_read(each) for key, each in value.items()}
    if isinstance(value, list):
        return [numbers_read(each) for each in value]
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d+e-\d+", value) else value


@pytest.mark.parametrize(("text", "message"), [
    ("a: [1, 2", "line 1: '[1, 2'"), ("a: {b: 1]", "line 1"), ("a: 1 2", "' 2' after the value"), ("x\n", "line 1: 'x' is no line"),
    ("a: 1\n\nb: {1}", "line 3"), ("a: - b", "line 1"), ("a: |\n  text", "line 2"), ("a: [1,, 2]", "line 1")])
def test_what_was_not_printed_by_the_program(text: str, message: str) -> None:
    from decent_train.printed_recipe import read_printed

    with pytest.raises(ValueError, match=re.escape(message)):
        read_printed(text)
