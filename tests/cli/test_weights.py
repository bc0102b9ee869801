"""Weights to start from: what every kind of file holds comes into the model bit for bit."""

from __future__ import annotations

import argparse
import collections
import pickle
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from runs import assert_says
from weights import OLD, Net, assert_same, loaded, no_weights, save, save_scripted


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "model.pt"
    save_scripted(Net(0), path)
    return path


# ---- files of all kinds --------------------------------------------------------------------------------------------

class Settings:
    """As a training program keeps its own beside the weights."""

    def __init__(self) -> None:
        self.depth, self.tags = 18, {"a", "b"}


def checkpoint(key: str, net: Net) -> dict:
    optimizer = torch.optim.Adam(net.parameters())
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    state = net.state_dict()
    state = collections.OrderedDict((name, tensor.clone()) for name, tensor in state.items())
    optimizer.step()
    return {"epoch": 3, "best": 0.25, "large": 1 << 80, "args": argparse.Namespace(lr=0.1, betas=(0.9, 0.99)),
            "settings": Settings(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state(),
            "history": np.ones(3), "device": torch.device("cpu"), "dtype": torch.float32, key: state,
            "later": [None, True, -5, 300, 70_000, b"bytes", {1: frozenset({2})}]}


def views(net: Net) -> dict[str, Tensor]:
    """Tensors in the middle of larger storages, in other orders than their elements, and repeated."""
    state = {}
    for name, tensor in net.state_dict().items():
        around = torch.zeros(tensor.numel() + 7, dtype=tensor.dtype)
        around[3:3 + tensor.numel()] = tensor.flatten()
        state[name] = around[3:3 + tensor.numel()].view(tensor.shape)
    state["wide"] = net.wide.t().contiguous().t()
    state["blocks.0.conv.weight"] = net.blocks[0].conv.weight.detach().contiguous(memory_format=torch.channels_last)
    state["low"] = torch.stack([net.low] * 2, 1)[:, 1]
    return state


class OfPython2(pickle._Pickler):
    """torch.save ran on Python 2 once: other texts, and an OrderedDict is made of a list of pairs."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, text: str) -> None:
        self.write(b"U" + bytes([len(text)]) + text.encode())
        self.memoize(text)

    dispatch[str] = save_text

    def reducer_override(self, thing: object):
        if type(thing) is collections.OrderedDict:
            return collections.OrderedDict, ([[name, tensor] for name, tensor in thing.items()],)
        return NotImplemented


class Python2:
    Pickler, dump = OfPython2, staticmethod(pickle.dump)


def zipped_anew(source: Path, path: Path, fill: int = 0) -> None:
    """Without torch's alignment, so that tensors lie at odd addresses."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
            new.writestr(f"{name.split('/')[0]}/.data/fill-{name.replace('/', '-')}", b"." * fill)


def save_zipped_anew(net: Net, path: Path) -> None:
    save(net.state_dict(), path.with_suffix(".first"))
    zipped_anew(path.with_suffix(".first"), path, fill=1)


def save_python2(net: Net, path: Path) -> None:
    save(net.state_dict(), path, pickle_module=Python2, _use_new_zipfile_serialization=False)


def save_traced(net: Net, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(net.eval(), torch.zeros(2, dtype=torch.int64), check_trace=False).save(str(path))


def save_with_attributes(net: Net, path: Path) -> None:
    state = net.state_dict(keep_vars=True)
    state["scale"].made_by = "someone"  # torch.save keeps attributes of tensors
    state["wide"].made_by = "someone"
    save(state, path)


def save_without_checksums(net: Net, path: Path) -> None:
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        save(net.state_dict(), path)
    finally:
        torch.serialization.set_crc32_options(before)


def prefixed(net: Net, prefix: str) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in net.state_dict().items()}


FILES: dict[str, Callable[[Net, Path], None]] = {
    "state_dict.pt": lambda net, path: save(net.state_dict(), path),
    "plain_dict.pt": lambda net, path: save(dict(net.state_dict()), path),
    "parameters.pth": lambda net, path: save(net.state_dict(keep_vars=True), path),
    "attributes.pt": save_with_attributes,
    **{f"protocol{n}.pt": lambda net, path, n=n: save(net.state_dict(), path, pickle_protocol=n) for n in (2, 3, 4, 5)},
    "old.pth": lambda net, path: save(net.state_dict(), path, **OLD),
    "old_protocol4.bin": lambda net, path: save(net.state_dict(), path, pickle_protocol=4, **OLD),
    "old_checkpoint.pth": lambda net, path: save(checkpoint("model", net), path, **OLD),
    "python2.pth": save_python2,
    **{f"{key}.pt": lambda net, path, key=key: save(checkpoint(key, net), path)
       for key in ("state_dict", "model", "module", "model_state_dict")},
    "two.pt": lambda net, path: save({"model": Net(7).state_dict(), "state_dict": net.state_dict()}, path),
    "data_parallel.pt": lambda net, path: save(nn.DataParallel(net).state_dict(), path),
    "compiled.pt": lambda net, path: save(prefixed(net, "_orig_mod."), path),
    "compiled_parallel.pt": lambda net, path: save({"model": prefixed(net, "module._orig_mod.")}, path),
    "parallel_compiled.pt": lambda net, path: save({"model": prefixed(net, "_orig_mod.module.")}, path),
    "views.pt": lambda net, path: save(views(net), path),
    "old_views.pt": lambda net, path: save(views(net), path, **OLD),
    "zipped_anew.bin": save_zipped_anew,
    "no_checksums.pt": save_without_checksums,
    "scripted.pt": save_scripted,
    "traced.pt": save_traced,
    "weights.safetensors": lambda net, path: save_file({n: t.clone() for n, t in net.state_dict().items()}, path),
}


@pytest.mark.parametrize("name", FILES)
def test_same_bits_as_in_pytorch(name: str, own: Path, tmp_path: Path) -> None:
    net = Net(1)
    wanted = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    FILES[name](net, tmp_path / name)
    assert_same(loaded(own, tmp_path / name, tmp_path), wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("how", [{}, OLD], ids=["zip", "old"])
def test_floating_point_types_are_converted(dtype: torch.dtype, how: dict, own: Path, tmp_path: Path) -> None:
    state = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor
             for name, tensor in Net(1).state_dict().items()}
    save(state, tmp_path / "w.pt", **how)
    wanted = Net(0)
    wanted.load_state_dict(state)
    assert_same(loaded(own, tmp_path / "w.pt", tmp_path), wanted.state_dict())


class Wrapped(nn.Module):
    """Its own names begin with those of a wrapper."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)


@pytest.mark.parametrize("prefix", ["", "module."])
def test_prefix_that_the_model_has_itself(prefix: str, tmp_path: Path) -> None:
    save_scripted(Wrapped(), tmp_path / "model.pt")
    net = Wrapped()
    save(prefixed(net, prefix), tmp_path / "w.pt")
    if not prefix:
        assert_same(loaded(tmp_path / "model.pt", tmp_path / "w.pt", tmp_path), net.state_dict())
    else:  # what would be left is in the model, but so is what is there
        message = no_weights(tmp_path / "model.pt", tmp_path / "w.pt", tmp_path)
        assert_says(message, "missing: 'module.weight'", "not in the model: 'module.module.bias'")


def test_prefix_of_some_names_only_stays(own: Path, tmp_path: Path) -> None:
    state = prefixed(Net(1), "module.")
    state["scale"] = state.pop("module.scale")
    save(state, tmp_path / "w.pt")
    assert_says(no_weights(own, tmp_path / "w.pt", tmp_path), "missing: ", "not in the model: 'module.")


def test_one_name_of_a_tied_tensor_is_enough(own: Path, tmp_path: Path) -> None:
    net = Net(1)
    state = dict(net.state_dict())
    del state["head.weight"]
    save(state, tmp_path / "w.pt")
    assert_same(loaded(own, tmp_path / "w.pt", tmp_path), net.state_dict())


def test_counter_of_batch_norm_may_be_missing(own: Path, tmp_path: Path) -> None:
    """State_dicts of before PyTorch 0.4.1 have none; PyTorch keeps the model's then, too."""
    net = Net(1)
    state = dict(net.state_dict())
    del state["blocks.0.norm.num_batches_tracked"]
    save(state, tmp_path / "w.pt")
    wanted = Net(0)
    wanted.load_state_dict(state)
    assert wanted.blocks[0].norm.num_batches_tracked == 3
    assert_same(loaded(own, tmp_path / "w.pt", tmp_path), wanted.state_dict())
    del state["blocks.0.norm.running_mean"]
    save(state, tmp_path / "w.pt")
    message = no_weights(own, tmp_path / "w.pt", tmp_path)
    assert_says(message, "missing: 'blocks.0.norm.running_mean', 'blocks.0.norm.num_batches_tracked'")


class Attributes(nn.Module):
    """A tensor that is neither parameter nor buffer, some of those that are None, a buffer that is not persistent."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2, bias=False)
        self.table = torch.randn(4)
        self.list = nn.ParameterList([nn.Parameter(torch.randn(2))])
        self.norm = nn.BatchNorm1d(2, affine=False, track_running_stats=False)
        self.register_buffer("passing", torch.randn(3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.fc(x)) + self.table.sum() + self.list[0] + self.passing.sum()


def test_attributes_of_torchscript(tmp_path: Path) -> None:
    net = Attributes()
    save_scripted(net, tmp_path / "w.pt")
    save_scripted(Attributes(), tmp_path / "model.pt")
    got = loaded(tmp_path / "model.pt", tmp_path / "w.pt", tmp_path)
    assert_same(got, {**net.state_dict(), "passing": net.passing})
    net.register_buffer("extra", torch.zeros(3))
    save_scripted(net, tmp_path / "w.pt")
    assert_says(no_weights(tmp_path / "model.pt", tmp_path / "w.pt", tmp_path), "not in the model: 'extra'\n")
