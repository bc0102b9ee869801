"""Operators that create tensors."""

from typing import List

import torch
from torch import Tensor

Device = torch.device  # TorchScript's name


# Range (opset 11) of integers.
def _range(self, start: int, limit: int, delta: int, device: Device) -> Tensor:
    count = -self._quotient(start - limit, delta) if delta > 0 else -self._quotient(limit - start, -delta)
    return torch.arange(max(count, 0), device=device) * delta + start


# Range (opset 11) of floating-point numbers.
def _float_range(self, start: float, limit: float, delta: float, device: Device) -> Tensor:
    count = max(-int((start - limit) // delta), 0)
    return torch.arange(count, device=device, dtype=torch.float64) * delta + start


# EyeLike (opset 9), as booleans.
def _eye(self, x: Tensor, diagonal: int) -> Tensor:
    rows = torch.arange(x.size(0), device=x.device).unsqueeze(1)
    return rows + diagonal == torch.arange(x.size(1), device=x.device)


# OneHot (opset 9).
def _one_hot(self, indices: Tensor, depth: int, values: Tensor, axis: int) -> Tensor:
    indices = indices.to(torch.int64)
    indices = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    sizes: List[int] = []
    for i in range(indices.dim()):
        sizes.append(1)
    sizes[axis] = depth
    classes = torch.arange(depth, device=indices.device).reshape(sizes)
    return torch.where(indices == classes, values[1], values[0])
