"""Reductions over axes, and running sums and products."""

from typing import List

import torch
from torch import Tensor


# ReduceSum and similar operators (opset 13 and 18) with computed axes: no axes mean all.
def _axes(self, axes: List[int], rank: int) -> List[int]:
    return axes if len(axes) > 0 else [i for i in range(rank)]


# ReduceMax (opset 1). ONNX defines the largest element of an empty tensor, PyTorch does not.
def _amax(self, x: Tensor, axes: List[int], keepdim: bool) -> Tensor:
    if x.numel() == 0:
        return torch.sum(x, axes, keepdim=keepdim) - float("inf")
    return torch.amax(x, axes, keepdim)


# ReduceMin (opset 1). ONNX defines the smallest element of an empty tensor, PyTorch does not.
def _amin(self, x: Tensor, axes: List[int], keepdim: bool) -> Tensor:
    if x.numel() == 0:
        return torch.sum(x, axes, keepdim=keepdim) + float("inf")
    return torch.amin(x, axes, keepdim)


# ReduceProd (opset 1).
def _prod(self, x: Tensor, axes: List[int], keepdim: bool) -> Tensor:
    places: List[int] = []
    for axis in axes:
        places.append(axis + x.dim() if axis < 0 else axis)
    places.sort(reverse=True)
    for place in places:
        x = torch.prod(x, place, keepdim, dtype=x.dtype)
    return x


# CumSum (opset 11), exclusive: without the element itself.
def _sum_before(self, x: Tensor, axis: int) -> Tensor:
    first = torch.zeros_like(x.narrow(axis, 0, 1))
    return torch.cat([first, torch.cumsum(x.narrow(axis, 0, x.size(axis) - 1), axis, dtype=x.dtype)], axis)


# CumProd (opset 26), exclusive: without the element itself.
def _prod_before(self, x: Tensor, axis: int) -> Tensor:
    first = torch.ones_like(x.narrow(axis, 0, 1))
    return torch.cat([first, torch.cumprod(x.narrow(axis, 0, x.size(axis) - 1), axis, dtype=x.dtype)], axis)
