"""A model whose weights come from files, and what the program makes of them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from program import Ended, run_alone
from runs import DIGITS, error_message

HOW_TO_SAVE = 'torch.save(model.state_dict(), "weights.pt")'
OLD = {"_use_new_zipfile_serialization": False}  # the format of before PyTorch 1.6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Net(nn.Module):
    """Parameters and buffers of every element type that a model can have, and tied ones."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.blocks = nn.Sequential(Block(), nn.ReLU())
        self.embed = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.randn(()))
        self.register_buffer("wide", torch.randn(3, 5, dtype=torch.float64))
        self.register_buffer("low", torch.randn(6).bfloat16())
        self.register_buffer("half_", torch.randn(6).half())
        self.register_buffer("mask", torch.rand(9) < 0.5)
        self.register_buffer("empty", torch.zeros(0, 3))
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            self.register_buffer(str(dtype).removeprefix("torch."), torch.randint(0, 100, (5,)).to(dtype))
        self.blocks[0].norm.running_mean.normal_()
        self.blocks[0].norm.num_batches_tracked.fill_(seed + 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.embed(x)) * self.scale + self.blocks(torch.zeros(1, 3, 5, 5)).sum() + self.low.sum()


def save_scripted(module: nn.Module, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(module).save(str(path))


def save(thing: object, path: Path, **how: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(thing, path, **how)


def start(model_file: Path, weights: Path, folder: Path) -> Ended:
    """Loads the weights into the model and writes what it has then to folder/start.safetensors."""
    config = folder / "recipe.yaml"
    config.write_text(json.dumps({"output": str(folder / "run"), "data": {"train": DIGITS["train"]},
                                  "model": {"path": str(model_file), "weights": str(weights)}}))
    return run_alone("--config", config, "--checkpoint", "none", "--export", folder / "start.safetensors", "--quiet")


def loaded(model_file: Path, weights: Path, folder: Path) -> dict[str, Tensor]:
    return exported(start(model_file, weights, folder), folder)


def exported(ended: Ended, folder: Path) -> dict[str, Tensor]:
    """What start() wrote."""
    assert (ended.code, ended.err) == (0, "")
    return load_file(folder / "start.safetensors")


def no_weights(model_file: Path, weights: Path, folder: Path) -> str:
    """The message where they cannot be loaded."""
    return error_message(start(model_file, weights, folder))


def bits(tensor: Tensor) -> bytes:
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def assert_same(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert (tensor.shape, tensor.dtype) == (b[name].shape, b[name].dtype), name
        assert bits(tensor) == bits(b[name]), name
