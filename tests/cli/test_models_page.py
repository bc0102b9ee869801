"""docs/models.md on what torch.export leaves out: the page's check finds it, and what the page writes instead trains as in Python."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from program import ROOT
from runs import NO_CHECKPOINTS, recipe, train
from tensors import read_safetensors, write_safetensors

C = 0.7  # a factor on gradients
STEPS, RATE = 30, 0.1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 3)

    def hidden(self, h: Tensor) -> Tensor:
        return functional.relu(h)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.hidden(self.a(x)))


class Regular(Net):
    """Dropout and batch norm draw and compute alike in both."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.3)

    def hidden(self, h: Tensor) -> Tensor:
        return self.dropout(functional.relu(self.norm(h)))


class ReverseFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return -C * gradient


class Reversal(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return ReverseFunction.apply(functional.relu(h))


class ReversalInOperators(Net):
    def hidden(self, h: Tensor) -> Tensor:
        x = functional.relu(h)
        return x.detach() + (C * x.detach() - C * x)


class SignFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return torch.sign(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient


class StraightThrough(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return SignFunction.apply(h)


class StraightThroughInOperators(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return h + (torch.sign(h) - h).detach()


class HookOnWeight(Net):
    def __init__(self) -> None:
        super().__init__()
        self.a.weight.register_hook(lambda gradient: C * gradient)


class HookOnWeightInOperators(Net):
    def forward(self, x: Tensor) -> Tensor:
        w = self.a.weight
        return self.b(self.hidden(functional.linear(x, w.detach() + C * (w - w.detach()), self.a.bias)))


class HookOnTensor(Net):
    def hidden(self, h: Tensor) -> Tensor:
        h.register_hook(lambda gradient: gradient.clamp(-1e-3, 1e-3))
        return functional.relu(h)


class HookOnModule(Net):
    def __init__(self) -> None:
        super().__init__()
        self.b.register_full_backward_hook(lambda module, inputs, outputs: tuple(C * each for each in inputs))


class Branch(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return functional.normalize(h) if self.training else functional.relu(h)


LOST = {Reversal: ["a.weight", "a.bias"], StraightThrough: ["a.weight", "a.bias"], HookOnWeight: ["a.weight"],
        HookOnTensor: ["a.weight", "a.bias"], HookOnModule: ["a.weight", "a.bias"]}
INSTEAD = {Reversal: ReversalInOperators, StraightThrough: StraightThroughInOperators, HookOnWeight: HookOnWeightInOperators}


def made(kind: type[Net], mode: str = "train") -> Net:
    torch.manual_seed(1)
    return kind().train(mode == "train")


def export(model: Net, path: Path) -> Path:
    x = torch.randn(5, 4)
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},)), path)
    return path


def checked(model: Net, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the page's three lines print."""
    text = (ROOT / "docs" / "models.md").read_text()
    (lines,) = [block for block in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M) if "allclose" in block]
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(folder)
    torch.manual_seed(2)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(lines, {"torch": torch, "model": model, "x": torch.randn(6, 4)})
    return re.findall(r"'([^']+)'", out.getvalue())


@pytest.mark.parametrize("kind", [Net, Regular, Branch, *INSTEAD.values()], ids=lambda kind: kind.__name__)
def test_nothing_is_lost(kind: type[Net], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(made(kind), tmp_path / "model.pt2")
    assert checked(made(kind), tmp_path, monkeypatch) == []


@pytest.mark.parametrize("kind", LOST, ids=lambda kind: kind.__name__)
def test_what_is_lost_is_found(kind: type[Net], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(made(kind), tmp_path / "model.pt2")
    assert checked(made(kind), tmp_path, monkeypatch) == LOST[kind]


def test_a_branch_that_the_export_took_in_eval_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(made(Branch, "eval"), tmp_path / "model.pt2")
    assert checked(made(Branch), tmp_path, monkeypatch) == ["a.weight", "a.bias", "b.weight", "b.bias"]


def trained_in_python(model: Net, x: Tensor, y: Tensor) -> Net:
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("kind", INSTEAD, ids=lambda kind: kind.__name__)
def test_what_the_page_writes_instead_trains_as_in_python(kind: type[Net], tmp_path: Path) -> None:
    """Steps of all samples, so that their order changes nothing but rounding: 30 steps of weights around 1 in float32."""
    torch.manual_seed(3)
    x, y = torch.randn(64, 4), torch.randn(64, 3)
    write_safetensors(tmp_path / "d.safetensors", {"x": x.numpy(), "y": y.numpy()})
    wanted = trained_in_python(made(kind), x, y).state_dict()
    apart = {}
    for way in (INSTEAD[kind], kind):
        own = recipe(export(made(way), tmp_path / f"{way.__name__}.pt2"), tmp_path / "d.safetensors", model={"loss": "mse"},
                     data={"batch_size": 64}, train={"steps": STEPS}, schedule={"name": "constant"}, checkpoint=NO_CHECKPOINTS,
                     optimizer={"name": "sgd", "lr": RATE, "momentum": 0, "weight_decay": 0})
        weights = read_safetensors(train(tmp_path / way.__name__, own).folder / "model.safetensors")
        apart[way] = max(abs(torch.as_tensor(weights[name]) - value).max().item() for name, value in wanted.items())
    assert apart[INSTEAD[kind]] < 1e-6
    assert apart[kind] > 0.01  # the page has its reason
