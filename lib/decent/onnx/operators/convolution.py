"""Padding that depends on the input's size."""

from typing import List

import torch
from torch import Tensor


# Conv (opset 1) and the pooling operators, auto_pad SAME_UPPER or SAME_LOWER: ceil(size / stride) windows. In the order
# of torch.constant_pad_nd, the last axis first.
def _same_padding(self, x: Tensor, kernel: List[int], strides: List[int], dilations: List[int],
                  upper: bool) -> List[int]:
    padding: List[int] = []
    for i in range(len(kernel)):
        axis = len(kernel) - 1 - i
        size = x.size(axis + 2)
        windows = self._quotient(size + strides[axis] - 1, strides[axis])
        last_end = (windows - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = max(0, last_end - size)
        begin = total // 2 if upper else total - total // 2
        padding.append(begin)
        padding.append(total - begin)
    return padding


# ConvTranspose (opset 1) with output_shape or auto_pad: crops the spatial axes at both ends, and appends zeros to axes
# that are too short.
def _fit(self, x: Tensor, sizes: List[int], upper: bool) -> Tensor:
    padding: List[int] = []
    for i in range(len(sizes)):
        axis = len(sizes) - 1 - i
        total = x.size(axis + 2) - sizes[axis]
        begin = total // 2 if upper else total - total // 2
        begin = max(0, begin)
        padding.append(-begin)
        padding.append(begin - total)
    return torch.constant_pad_nd(x, padding, 0.0)
