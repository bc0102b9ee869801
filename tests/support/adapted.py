"""Networks that have low-rank adapters (LoRA, arXiv 2106.09685) of their own: what model.lora is compared with."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class LowRank(nn.Module):
    """The weight of a layer: W + (alpha / rank) B A. W is no parameter."""

    def __init__(self, weight: Tensor, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = weight.detach().clone()
        self.scale = alpha / rank
        size, number = self.base[0].numel(), self.base.size(0)
        self.lora_A = nn.Parameter(torch.randn(rank, size) / size ** 0.5)
        self.lora_B = nn.Parameter(torch.randn(number, rank) / size ** 0.5)

    def forward(self) -> Tensor:
        if self.base.dim() == 2:
            return torch.addmm(self.base, self.lora_B, self.lora_A, alpha=self.scale)
        return torch.add(self.base, (self.lora_B @ self.lora_A).view(self.base.shape), alpha=self.scale)


class Linear(nn.Module):
    def __init__(self, layer: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.weight = LowRank(layer.weight, rank, alpha)
        self.bias = None if layer.bias is None else layer.bias.detach().clone()

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight(), self.bias)


class Conv2d(nn.Module):
    def __init__(self, layer: nn.Conv2d, rank: int, alpha: float) -> None:
        super().__init__()
        self.weight = LowRank(layer.weight, rank, alpha)
        self.bias = None if layer.bias is None else layer.bias.detach().clone()
        self.stride, self.padding = layer.stride, layer.padding

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv2d(x, self.weight(), self.bias, self.stride, self.padding)


def adapted(net: nn.Module, layers: list[str], rank: int, alpha: float) -> nn.Module:
    """A copy of `net` whose `layers` have adapters, of other values for every seed of torch. Their weights and biases are no
    parameters; adapters are <layer>.weight.lora_A and lora_B.
    """
    net = copy.deepcopy(net)
    for name in layers:
        owner, _, child = name.rpartition(".")
        layer = net.get_submodule(name)
        kind = {nn.Linear: Linear, nn.Conv2d: Conv2d}[type(layer)]
        setattr(net.get_submodule(owner), child, kind(layer, rank, alpha))
    return net
