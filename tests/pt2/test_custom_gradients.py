"""Backwards of torch.autograd.Function are not in an exported program: the start of a run names the functions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils.checkpoint import checkpoint

from exported import export, settings
from networks import vectors
from runs import attempt, train

SAYS = "torch.autograd.Function"


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return -gradient


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor, height: float) -> Tensor:
        above = x > 0
        return above.to(x.dtype) * height

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def through_a_function(x: Tensor) -> Tensor:
    return Spike.apply(x, 2.0)


spike = Spike.apply


class Net(nn.Module):
    def __init__(self, between: str) -> None:
        super().__init__()
        self.first, self.second, self.between = nn.Linear(8, 6), nn.Linear(6, 4), between

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if self.between == "apply":
            h = h + Reverse.apply(h)
        elif self.between == "function":
            h = h + through_a_function(h)
        elif self.between == "other name":
            h = h + spike(h, 2.0)
        elif self.between == "forward by name":
            h = torch.tanh(self.first.forward(x))
        elif self.between == "checkpoint":
            h = checkpoint(torch.tanh, h, use_reentrant=False)
        return self.second(h)


NAMES = {"apply": "Reverse", "function": "h = h + through_a_function(h)", "other name": "h = h + spike(h, 2.0)"}


@pytest.mark.parametrize("between", NAMES)
def test_start_of_a_run_names_them(between: str, tmp_path: Path) -> None:
    file = export(Net(between), vectors(), tmp_path / "model")
    for flags in ([], ["--dry-run"]):
        [ended] = attempt(tmp_path / f"run{len(flags)}", settings(file, vectors(), steps=2), *flags)
        assert ended.code == 0, ended.err
        [line, *_] = [line for line in ended.out.splitlines() if line.startswith("note") and SAYS in line]
        assert f": {NAMES[between]} (docs/models.md)" in line


def test_of_a_strict_export(tmp_path: Path) -> None:
    file = tmp_path / "model" / "model.pt2"
    file.parent.mkdir()
    program = torch.export.export(Net("apply"), (torch.ones(2, 8),), dynamic_shapes=({0: Dim("batch")},), strict=True)
    torch.export.save(program, file)
    run = train(tmp_path, settings(file, vectors(), steps=2))
    assert "forward: Reverse (docs/models.md)" in run.ended[0].out


@pytest.mark.parametrize("between", ["nothing", "forward by name", "checkpoint"])
def test_other_models_are_not_said_to_have_any(between: str, tmp_path: Path) -> None:
    file = export(Net(between), vectors(), tmp_path / "model")
    run = train(tmp_path, settings(file, vectors(), steps=2))
    assert SAYS not in run.ended[0].out
