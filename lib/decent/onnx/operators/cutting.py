"""Tensors cut apart and padded, by sizes that are known when the model runs."""

from typing import List

import torch
from torch import Tensor


# Slice (opset 1) with a negative step. torch.slice only goes forwards, so this takes the same elements forwards and
# flips them.
def _slice_backwards(self, x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    size = x.size(axis)
    first = min(max(start + size if start < 0 else start, 0), size - 1)
    stop = min(max(end + size if end < 0 else end, -1), size - 1)
    count = max(self._quotient(first - stop - step - 1, -step), 0)
    last = first + (count - 1) * step
    if count == 0:
        return torch.slice(x, axis, 0, 0, 1)
    return torch.slice(x, axis, last, first + 1, -step).flip([axis])


# Slice (opset 10), whose starts, ends, axes and steps are computed.
def _slice(self, x: Tensor, starts: List[int], ends: List[int], axes: List[int], steps: List[int]) -> Tensor:
    for i in range(len(starts)):
        axis = axes[i] if len(axes) > 0 else i
        step = steps[i] if len(steps) > 0 else 1
        if step > 0:
            x = torch.slice(x, axis, starts[i], ends[i], step)
        else:
            x = self._slice_backwards(x, axis, starts[i], ends[i], step)
    return x


# Pad (opset 11) with computed pads: in torch.constant_pad_nd's order, pairs of before and after from the last dimension
# backwards.
def _pad_sizes(self, rank: int, pads: List[int], axes: List[int]) -> List[int]:
    sizes: List[int] = []
    for i in range(2 * rank):
        sizes.append(0)
    count = len(pads) // 2
    for i in range(count):
        axis = axes[i] if len(axes) > 0 else i
        place = rank - 1 - (axis + rank if axis < 0 else axis)
        sizes[2 * place] = pads[i]
        sizes[2 * place + 1] = pads[i + count]
    return sizes


# Pad (opset 2) along one axis, modes edge, reflect and wrap.
def _pad_axis(self, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.size(axis)
    place = torch.arange(-before, size + after, device=x.device)
    if mode == "wrap":
        place = place.remainder(size)
    elif mode == "reflect" and size > 1:
        period = 2 * (size - 1)
        place = place.remainder(period)
        place = torch.where(place < size, place, period - place)
    else:
        place = place.clamp(0, size - 1)
    return x.index_select(axis, place)


# Pad (opset 2) if PyTorch has no function for the mode and the dimensions.
def _pad(self, x: Tensor, pads: List[int], axes: List[int], mode: str) -> Tensor:
    count = len(pads) // 2
    for i in range(count):
        axis = axes[i] if len(axes) > 0 else i
        if pads[i] != 0 or pads[i + count] != 0:
            x = self._pad_axis(x, axis, pads[i], pads[i + count], mode)
    return x


# DepthToSpace (opset 1) in mode DCR; torch.pixel_shuffle is CRD.
def _depth_to_space(self, x: Tensor, block: int) -> Tensor:
    n, depth, height, width = x.size()
    left = self._quotient(depth, block * block)
    x = x.reshape([n, block, block, left, height, width])
    x = x.permute([0, 3, 4, 1, 5, 2])
    return x.reshape([n, left, height * block, width * block])


# SpaceToDepth (opset 1), the opposite of DepthToSpace's DCR.
def _space_to_depth(self, x: Tensor, block: int) -> Tensor:
    n, depth, height, width = x.size()
    rows, columns = self._quotient(height, block), self._quotient(width, block)
    x = x.reshape([n, depth, rows, block, columns, block])
    x = x.permute([0, 3, 5, 1, 2, 4])
    return x.reshape([n, depth * block * block, rows, columns])
