"""Max, Min, Mean and Sum of many tensors, by a loop: TorchScript's compiler calls itself for every expression inside an
expression.
"""

from typing import List

import torch
from torch import Tensor


# Sum and Mean (opset 8).
def _sum(self, xs: List[Tensor]) -> Tensor:
    y = xs[0]
    for x in xs[1:]:
        y = y + x
    return y


# Max (opset 8).
def _maximum(self, xs: List[Tensor]) -> Tensor:
    y = xs[0]
    for x in xs[1:]:
        y = torch.maximum(y, x)
    return y


# Min (opset 8).
def _minimum(self, xs: List[Tensor]) -> Tensor:
    y = xs[0]
    for x in xs[1:]:
        y = torch.minimum(y, x)
    return y
