"""Models that keep what they compute behind calls: each of PLACES puts a module of the zoo [B, 6] -> [B, 3] in one."""

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import zoo


class Within(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class InBranch(Within):
    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) > 0:
            y = self.inner(x)
        else:
            y = torch.zeros(0, 3)
        return y


class InLoop(Within):
    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        for _ in range(x.size(0) // x.size(0)):
            y = y + self.inner(x)
        return y


class InMethod(Within):
    def outer(self, x: Tensor) -> Tensor:
        return self.middle(x)

    def middle(self, x: Tensor) -> Tensor:
        return self.inner(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(x)


class InList(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Identity(), Within(inner))])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class InFork(Within):
    def forward(self, x: Tensor) -> Tensor:
        return torch.jit.wait(torch.jit.fork(self.inner, x))


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class InInterface(nn.Module):
    inner: Layer

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = torch.jit.script(inner)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner.forward(x)


class FromList(nn.Module):
    """Which one is called is only known when it runs."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Within(Within(inner))])

    def forward(self, x: Tensor) -> Tensor:
        layer: Layer = self.layers[x.size(0) - x.size(0)]
        return layer.forward(x)


class FromBranch(nn.Module):
    """The same, and nothing says where the called one comes from."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.left = nn.ModuleList([Within(inner)])
        self.right = nn.ModuleList([Within(nn.Identity())])

    def forward(self, x: Tensor) -> Tensor:
        first = x.size(0) - x.size(0)
        layer: Layer = self.left[first]
        if x.size(0) == 0:
            other: Layer = self.right[first]
            layer = other
        return layer.forward(x)


PLACES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "itself": lambda inner: inner,
    "depth 1": Within,
    "depth 2": lambda inner: Within(Within(inner)),
    "depth 3": lambda inner: Within(Within(Within(inner))),
    "branch": lambda inner: InBranch(Within(inner)),
    "loop": lambda inner: InLoop(Within(inner)),
    "method": InMethod,
    "list": InList,
    "fork": lambda inner: InFork(Within(inner)),
    "interface": InInterface,
    "interface of an interface": lambda inner: InInterface(InInterface(inner)),
    "choice from a list": FromList,
    "choice by a branch": FromBranch,
}


# ---- the same behind functions --------------------------------------------------------------------------------------

def data_of(weight: Tensor) -> Tensor:
    return weight.data


def linear_of_data(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, data_of(weight))


class StoppedInFunctions(zoo.Stopped):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.fc2(F.gelu(linear_of_data(F.gelu(self.fc1(x)), self.fc2.weight))))


def always_dropped(x: Tensor, on: bool) -> Tensor:
    return torch.dropout(x, 0.5, on)


def dropped(x: Tensor) -> Tensor:
    return always_dropped(x, True)


class DroppedInFunctions(zoo.Mlp):
    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(dropped(F.gelu(self.norm(self.fc1(x)))))


def stopped(place: str) -> nn.Module:
    """Uses a weight through .data after its gradient is complete."""
    torch.manual_seed(3)
    return StoppedInFunctions() if place == "functions" else PLACES[place](zoo.StoppedByData())


def fixed(place: str) -> nn.Module:
    """Has one dropout, and behind calls of modules one batch norm, with the mode as a constant."""
    torch.manual_seed(3)
    if place == "functions":
        return DroppedInFunctions()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        traced = torch.jit.trace(zoo.DropoutNorm().train(), torch.zeros(8, zoo.FEATURES), check_trace=False)
    return PLACES[place](traced)
