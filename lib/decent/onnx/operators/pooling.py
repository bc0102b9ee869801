"""Windows that PyTorch's pooling functions do not have: dilated averages, sums of powers, padding that differs between
the ends of an axis; and ONNX's indices of maxima. Padding is in the order of torch.constant_pad_nd, the last axis
first.
"""

from typing import List

import torch
from torch import Tensor


# AveragePool, LpPool and MaxPool with ceil_mode (opset 10, 18 and 10): padding for a last window that is cut short,
# unless it begins after the input.
def _ceil_padding(self, x: Tensor, kernel: List[int], strides: List[int], dilations: List[int],
                  padding: List[int]) -> List[int]:
    extra: List[int] = []
    for i in range(len(kernel)):
        axis = len(kernel) - 1 - i
        size = x.size(axis + 2) + padding[2 * i]
        room = size + padding[2 * i + 1] - (kernel[axis] - 1) * dilations[axis] - 1
        last_begin = self._quotient(room, strides[axis]) * strides[axis]
        next_begin = last_begin + strides[axis]
        missing = next_begin - room if last_begin != room and next_begin < size else 0
        extra.append(0)
        extra.append(missing)
    return extra


# LpPool (opset 2) and MaxPool (opset 1): the padding with that of ceil_mode.
def _window_padding(self, x: Tensor, kernel: List[int], strides: List[int], dilations: List[int], padding: List[int],
                    ceil_mode: bool) -> List[int]:
    if not ceil_mode:
        return padding
    extra = self._ceil_padding(x, kernel, strides, dilations, padding)
    return [padding[i] + extra[i] for i in range(len(padding))]


# AveragePool (opset 1) and LpPool (opset 2): a convolution with ones, each channel by itself.
def _window_sums(self, x: Tensor, kernel: List[int], strides: List[int], dilations: List[int]) -> Tensor:
    ones = torch.ones([1, 1] + kernel, dtype=x.dtype, device=x.device)
    none = [0 for _ in kernel]
    planes = x.flatten(0, 1).unsqueeze(1)
    sums = torch.convolution(planes, ones, None, strides, none, dilations, False, none, 1)
    return sums.view(x.shape[:2] + sums.shape[2:])


# AveragePool (opset 1); dilations are opset 19's.
def _average_windows(self, x: Tensor, kernel: List[int], strides: List[int], dilations: List[int], padding: List[int],
                     ceil_mode: bool, counts_padding: bool) -> Tensor:
    counted = torch.ones([1, 1] + x.shape[2:], dtype=x.dtype, device=x.device)
    counted = torch.constant_pad_nd(counted, padding, 1.0 if counts_padding else 0.0)
    padded = torch.constant_pad_nd(x, padding, 0.0)
    if ceil_mode:
        extra = self._ceil_padding(x, kernel, strides, dilations, padding)
        counted = torch.constant_pad_nd(counted, extra, 0.0)
        padded = torch.constant_pad_nd(padded, extra, 0.0)
    sums = self._window_sums(padded, kernel, strides, dilations)
    return sums / self._window_sums(counted, kernel, strides, dilations)


# LpPool (opset 2).
def _lp_pool(self, x: Tensor, kernel: List[int], strides: List[int], dilations: List[int], padding: List[int],
             ceil_mode: bool, p: float) -> Tensor:
    whole = self._window_padding(x, kernel, strides, dilations, padding, ceil_mode)
    powers = torch.constant_pad_nd(torch.pow(torch.abs(x), p), whole, 0.0)
    return torch.pow(self._window_sums(powers, kernel, strides, dilations), 1.0 / p)


# MaxPool (opset 8), output 1: from places in one padded plane to places in all of x.
def _flat_indices(self, index: Tensor, x: Tensor, padding: List[int], column_major: bool) -> Tensor:
    sizes = x.shape[2:]
    rest = index
    flat = torch.zeros_like(index)
    plane = 1
    for size in sizes:
        plane = plane * size
    before = plane
    behind = 1
    for i in range(len(sizes)):
        size = sizes[len(sizes) - 1 - i]
        padded = size + padding[2 * i] + padding[2 * i + 1]
        before = self._quotient(before, size)
        place = torch.remainder(rest, padded) - padding[2 * i]
        flat = flat + place * (before if column_major else behind)
        rest = torch.div(rest, padded, rounding_mode="floor")
        behind = behind * size
    first = torch.arange(x.size(0) * x.size(1), device=x.device) * plane
    return flat + first.view(x.shape[:2] + [1 for _ in sizes])


# MaxUnpool (opset 9).
def _max_unpool(self, x: Tensor, index: Tensor, kernel: List[int], strides: List[int], padding: List[int],
                sizes: List[int]) -> Tensor:
    shape = x.shape[:2]
    for axis in range(len(kernel)):
        i = 2 * (len(kernel) - 1 - axis)
        size = (x.size(axis + 2) - 1) * strides[axis] + kernel[axis] - padding[i] - padding[i + 1]
        shape.append(size)
    y = torch.zeros(shape, dtype=x.dtype, device=x.device).flatten()
    y = y.scatter(0, index.flatten(), x.flatten()).view(shape)
    extra: List[int] = []
    for i in range(len(sizes)):
        axis = len(sizes) - 1 - i
        extra.append(0)
        extra.append(sizes[axis] - shape[axis])
    return torch.constant_pad_nd(y, extra, 0.0)


# GlobalAveragePool, GlobalLpPool and GlobalMaxPool (opset 1, 2 and 1) of a tensor whose rank is known when the model
# runs.
def _spatial_axes(self, x: Tensor) -> List[int]:
    return [axis for axis in range(2, x.dim())]
