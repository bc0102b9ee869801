"""Normalization whose scale is broadcast, and functions that PyTorch has only in Python."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor


# LayerNormalization (opset 17).
def _layer_norm(self, x: Tensor, axis: int, scale: Tensor, bias: Optional[Tensor], eps: float) -> Tensor:
    shape = x.shape[axis:]
    if scale.shape == shape and (bias is None or bias.shape == shape):
        return torch.layer_norm(x, shape, scale, bias, eps)
    y = torch.layer_norm(x, shape, None, None, eps) * scale
    return y if bias is None else y + bias


# LayerNormalization (opset 17), outputs 1 and 2: the mean, and 1 / the standard deviation.
def _layer_statistics(self, x: Tensor, axis: int, eps: float) -> Tuple[Tensor, Tensor]:
    first = axis if axis >= 0 else x.dim() + axis
    axes = [i for i in range(first, x.dim())]
    mean = torch.mean(x, axes, keepdim=True)
    deviation = x - mean
    variance = torch.mean(deviation * deviation, axes, keepdim=True)
    return mean, torch.rsqrt(variance + eps)


# RMSNormalization (opset 23).
def _rms_norm(self, x: Tensor, axis: int, scale: Tensor, eps: float) -> Tensor:
    shape = x.shape[axis:]
    if scale.shape == shape and scale.dtype == x.dtype:
        return torch.rms_norm(x, shape, scale, eps)
    return torch.rms_norm(x, shape, None, eps) * scale


# LRN (opset 1), as torch.nn.functional.local_response_norm; with an even size, the window has one more place after the
# element.
def _local_response_norm(self, x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    squares = (x * x).flatten(2).unsqueeze(1)
    squares = torch.constant_pad_nd(squares, [0, 0, (size - 1) // 2, size // 2], 0.0)
    sums = torch.avg_pool2d(squares, [size, 1], [1, 1]).squeeze(1).view_as(x)
    return x / torch.pow(sums * alpha + bias, beta)


# MeanVarianceNormalization (opset 9).
def _mean_variance_norm(self, x: Tensor, axes: List[int]) -> Tensor:
    deviation = x - torch.mean(x, axes, keepdim=True)
    variance = torch.mean(deviation * deviation, axes, keepdim=True)
    return deviation / (torch.sqrt(variance) + 1e-09)
