"""Comparisons in types that PyTorch does not compare."""

import torch
from torch import Tensor


# Greater, GreaterOrEqual, Less and LessOrEqual (opset 7 and 12), and Equal (opset 7): uint64 as int64 in the same
# order.
def _ordered(self, x: Tensor) -> Tensor:
    return torch.view_copy(x, dtype=torch.int64) ^ (-9223372036854775807 - 1)
