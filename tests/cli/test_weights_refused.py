"""Weights to start from: files that hold none, or not the model's."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from runs import assert_says
from weights import HOW_TO_SAVE, OLD, Net, no_weights, save, save_scripted


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "model.pt"
    save_scripted(Net(0), path)
    return path


def zipped_anew(net: Net, path: Path, compression: int, order: bytes = b"little") -> None:
    """torch.save's archive with its entries compressed so, and another order of bytes in its record of that."""
    save(net.state_dict(), path.with_suffix(".first"))
    with zipfile.ZipFile(path.with_suffix(".first")) as old, zipfile.ZipFile(path, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, order if name.endswith("byteorder") else old.read(name))


def with_entry(net: Net, name: str, value: object) -> dict:
    return {**net.state_dict(), name: value}


def cut_short(net: Net, path: Path, **how: object) -> None:
    buffer = io.BytesIO()
    save(net.state_dict(), buffer, **how)
    path.write_bytes(buffer.getvalue()[:-500])


def sparse() -> Tensor:
    return torch.eye(3).to_sparse()


def quantized() -> Tensor:
    return torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)


REFUSED: dict[str, tuple[Callable[[Net, Path], object], list[str]]] = {
    "whole_model": (lambda net, path: save(net, path),
                    ["a whole Python model of class 'weights.Net'", HOW_TO_SAVE]),
    "whole_model_inside": (lambda net, path: save({"epoch": 1, "model": net}, path),
                           ["under 'model' a whole Python model of class 'weights.Net'", HOW_TO_SAVE]),
    "tensor": (lambda net, path: save(torch.ones(3), path), ["holds a tensor, not a state_dict", HOW_TO_SAVE]),
    "list": (lambda net, path: save([torch.ones(3)], path), ["holds a list, not a state_dict", HOW_TO_SAVE]),
    "no_state_dict": (lambda net, path: save({"epoch": 3, "net": net.state_dict()}, path),
                      ["holds no state_dict", "'model_state_dict'", "It has: 'epoch', 'net'", HOW_TO_SAVE]),
    "no_state_dict_but_a_tensor": (lambda net, path: save({"epoch": 3, "rng": torch.ones(3), "net": {}}, path),
                                   ["holds no state_dict", "It has: 'epoch', 'rng', 'net'"]),
    "list_inside": (lambda net, path: save({"model": [torch.ones(3)]}, path),
                    ["has under 'model' a list, not a state_dict", HOW_TO_SAVE]),
    "empty": (lambda net, path: save({}, path), ["holds no state_dict", "It has: nothing"]),
    "number_inside": (lambda net, path: save(with_entry(net, "epoch", 3), path),
                      ["'epoch' is a number, not a tensor"]),
    "number_as_name": (lambda net, path: save({"state_dict": {**net.state_dict(), 3: torch.ones(1)}}, path),
                       ["a name in its state_dict is a number"]),
    "sparse": (lambda net, path: save(with_entry(net, "scale", sparse()), path),
               ["'scale'", "_rebuild_sparse_tensor"]),
    "quantized": (lambda net, path: save(with_entry(net, "scale", quantized()), path),
                  ["'scale'", "_rebuild_qtensor"]),
    "complex": (lambda net, path: save(with_entry(net, "scale", torch.ones(3, dtype=torch.complex64)), path),
                ["'scale'", "ComplexFloatStorage"]),
    "uint16": (lambda net, path: save(with_entry(net, "scale", torch.ones(3, dtype=torch.uint16)), path),
               ["'scale'", "uint16"]),
    "meta": (lambda net, path: save(with_entry(net, "scale", torch.ones(3, device="meta")), path),
             ["'scale'", "meta"]),
    "negated": (lambda net, path: save(with_entry(net, "scale", torch.ones(3, dtype=torch.complex64).conj().imag),
                                       path), ["'scale'", "negates"]),
    "big_endian": (lambda net, path: zipped_anew(net, path, zipfile.ZIP_STORED, b"big"), ["big-endian"]),
    "deflated": (lambda net, path: zipped_anew(net, path, zipfile.ZIP_DEFLATED),
                 ["is compressed", "torch.save(torch.load(..), ..)"]),
    "cut_short": (cut_short, ["no zip archive, or cut short"]),
    "old_cut_short": (lambda net, path: cut_short(net, path, **OLD), ["damaged", "cut short?"]),
    "protocol_0": (lambda net, path: save(net.state_dict(), path, pickle_protocol=0), ["protocol 2 or later"]),
    "pickle": (lambda net, path: path.write_bytes(pickle.dumps({"a": 1})), ["a Python pickle, but not one of torch"]),
    "text": (lambda net, path: path.write_text("no weights"), ["is not a file of torch.save"]),
    "nothing": (lambda net, path: path.write_bytes(b""), ["is not a file of torch.save"]),
    "other_zip": (lambda net, path: zipfile.ZipFile(path, "w").writestr("a/b", "c"), ["a zip archive, but not one of"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, own: Path, tmp_path: Path) -> None:
    write, texts = REFUSED[name]
    write(Net(1), tmp_path / "w.pt")
    assert_says(no_weights(own, tmp_path / "w.pt", tmp_path), f"model.weights: '{tmp_path / 'w.pt'}'", *texts)


def test_weights_that_do_not_fit(own: Path, tmp_path: Path) -> None:
    state = dict(Net(1).state_dict())
    state["scales"] = state.pop("scale")
    state["wide"] = torch.zeros(3, 6)
    state["int32"] = torch.zeros(5, dtype=torch.int64)
    save(state, tmp_path / "w.pt")
    message = no_weights(own, tmp_path / "w.pt", tmp_path)
    assert_says(message, own, "missing: 'scale'\n", "not in the model: 'scales'\n",
                "'wide' is float32[3, 6], the model's float64[3, 5]", "'int32' is int64[5], the model's int32[5]")


def test_names_of_files(own: Path, tmp_path: Path) -> None:
    assert_says(no_weights(own, tmp_path / "nowhere.pt", tmp_path), "model.weights", "nowhere.pt", "No such file")
    os.mkfifo(tmp_path / "pipe.pt")
    assert_says(no_weights(own, tmp_path / "pipe.pt", tmp_path), "model.weights", "pipe.pt", "not a file")
    assert_says(no_weights(own, tmp_path, tmp_path), "model.weights", "valid: .safetensors, .pt, .pth, .bin")
    (tmp_path / "w.safetensors").write_bytes(b"no weights")
    assert_says(no_weights(own, tmp_path / "w.safetensors", tmp_path), "model.weights: '", "w.safetensors")
