"""Arithmetic of integers. uint64, in which PyTorch does not compute, is held in int64."""

import torch
from torch import Tensor


# Div (opset 7) of signed integers. The smallest integer divided by -1, which processors refuse, gives itself.
def _truncated_quotient(self, a: Tensor, b: Tensor) -> Tensor:
    divisor = torch.where(b == -1, torch.ones_like(b), b)
    return torch.where(b == -1, -a, torch.div(a, divisor, rounding_mode="trunc"))


# BitShift (opset 11) of uint64.
def _unsigned_shift_right(self, x: Tensor, bits: Tensor) -> Tensor:
    # the first step brings a 0 in at the top
    halved = torch.bitwise_and(torch.bitwise_right_shift(x, 1), 9223372036854775807)
    return torch.where(bits == 0, x, torch.bitwise_right_shift(halved, bits - 1))


# Div (opset 7) and Mod (opset 10) of uint64: x >= y.
def _unsigned_at_least(self, x: Tensor, y: Tensor) -> Tensor:
    top_bit = -9223372036854775807 - 1
    return torch.bitwise_xor(x, top_bit) >= torch.bitwise_xor(y, top_bit)


# Div (opset 7) of uint64.
def _unsigned_divide(self, x: Tensor, y: Tensor) -> Tensor:
    # twice the quotient of half the dividend is too small by 1 at most
    halved = torch.bitwise_and(torch.bitwise_right_shift(x, 1), 9223372036854775807)
    quotient = torch.bitwise_left_shift(torch.div(halved, y, rounding_mode="trunc"), 1)
    quotient = quotient + self._unsigned_at_least(x - quotient * y, y).to(torch.int64)
    return torch.where(y < 0, self._unsigned_at_least(x, y).to(torch.int64), quotient)


# Mod (opset 10) of uint64.
def _unsigned_remainder(self, x: Tensor, y: Tensor) -> Tensor:
    return x - self._unsigned_divide(x, y) * y
