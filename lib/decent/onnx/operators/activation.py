"""Activation functions that PyTorch lacks."""

import torch
from torch import Tensor


# Hardmax (opset 1).
def _hardmax(self, x: Tensor, axis: int) -> Tensor:
    # the first of equal ones, as argmax
    return torch.zeros_like(x).scatter(axis, torch.argmax(x, axis, True), 1.0)
