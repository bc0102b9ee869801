"""Resize beyond PyTorch's own functions: axis by axis, with the positions and weights that ONNX defines."""

from typing import List, Tuple

import torch
from torch import Tensor


# Resize (opset 11), coordinate_transformation_mode: the positions in x of the result's elements.
def _resize_positions(self, x: Tensor, length: int, size: int, scale: float, transform: str, start: float,
                      end: float) -> Tensor:
    i = torch.arange(size, dtype=torch.float64, device=x.device)
    last = float(length - 1)
    if transform == "asymmetric":
        return i / scale
    if transform == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if transform == "align_corners":
        return i * last / float(max(size - 1, 1))
    if transform == "tf_crop_and_resize":
        if size == 1:
            return i + 0.5 * (start + end) * last
        return start * last + i * (end - start) * last / float(size - 1)
    if transform == "pytorch_half_pixel" and size == 1:
        return i
    positions = (i + 0.5) / scale - 0.5
    if transform == "half_pixel_symmetric":
        positions = positions + 0.5 * length * (1.0 - size / (scale * length))
    return positions


# Resize (opset 11) in mode nearest, along one axis.
def _resize_nearest(self, x: Tensor, axis: int, positions: Tensor, rounding: str) -> Tensor:
    if rounding == "round_prefer_floor":
        positions = torch.ceil(positions - 0.5)
    elif rounding == "round_prefer_ceil":
        positions = torch.floor(positions + 0.5)
    elif rounding == "ceil":
        positions = torch.ceil(positions)
    else:
        positions = torch.floor(positions)
    return x.index_select(axis, torch.clamp(positions, 0, x.size(axis) - 1).to(torch.int64))


# Resize (opset 11) in modes linear and cubic: the weight of an element by its distance.
def _resize_kernel(self, distance: Tensor, cubic: bool, a: float) -> Tensor:
    d = torch.abs(distance)
    if not cubic:
        return torch.clamp(1.0 - d, 0.0)
    near = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    far = ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    return torch.where(d <= 1.0, near, torch.where(d < 2.0, far, torch.zeros_like(d)))


# Resize (opset 11) in modes linear and cubic: [size, length]; beyond the ends there are copies of the last elements.
def _resize_weights(self, positions: Tensor, length: int, stretch: float, cubic: bool, a: float,
                    exclude: bool) -> Tensor:
    reach = int((2.0 if cubic else 1.0) * stretch + 0.999999)
    first = torch.floor(positions).unsqueeze(1)
    near = first + torch.arange(1 - reach, reach + 1, device=positions.device)
    weights = self._resize_kernel((near - positions.unsqueeze(1)) / stretch, cubic, a)
    if stretch > 1.0:
        weights = weights / weights.sum(1, True)
    if exclude:
        weights = weights.masked_fill((near < 0) | (near > length - 1), 0.0)
        weights = weights / weights.sum(1, True)
    matrix = torch.zeros([positions.size(0), length], dtype=positions.dtype, device=positions.device)
    return matrix.scatter_add(1, torch.clamp(near, 0, length - 1).to(torch.int64), weights)


# Resize (opset 11) by scales: the sizes of the result.
def _resize_sizes(self, x: Tensor, axes: List[int], scales: List[float], region: List[float]) -> List[int]:
    # a little more than the product, so that 10 * float32(0.7) is 7
    sizes: List[int] = []
    for i, axis in enumerate(axes):
        part = region[len(axes) + i] - region[i] if len(region) > 0 else 1.0
        sizes.append(int(x.size(axis) * part * scales[i] * 1.0000001))
    return sizes


# Resize (opset 11) by sizes: the scales.
def _resize_scales(self, x: Tensor, axes: List[int], sizes: List[int]) -> List[float]:
    return [float(sizes[i]) / float(x.size(axes[i])) for i in range(len(axes))]


# Resize (opset 18) with keep_aspect_ratio_policy: sizes and scales.
def _resize_keeping_aspect(self, x: Tensor, axes: List[int], sizes: List[int],
                           smaller: bool) -> Tuple[List[int], List[float]]:
    scales = self._resize_scales(x, axes, sizes)
    scale = min(scales) if smaller else max(scales)
    return [int(scale * x.size(axis) + 0.5) for axis in axes], [scale for axis in axes]


# Resize (opset 10; antialias, axes and the half_pixel_symmetric mode are opset 18's and 19's) and Upsample (opset 9).
def _resize(self, x: Tensor, axes: List[int], sizes: List[int], scales: List[float], region: List[float], mode: str,
            transform: str, rounding: str, a: float, exclude: bool, antialias: bool, outside: float) -> Tensor:
    for i, axis in enumerate(axes):
        length = x.size(axis)
        start, end = 0.0, 1.0
        if len(region) > 0:
            start, end = region[i], region[len(axes) + i]
        if sizes[i] == length and abs(scales[i] - 1.0) < 1e-9 and start == 0.0 and end == 1.0:
            continue
        positions = self._resize_positions(x, length, sizes[i], scales[i], transform, start, end)
        beyond = (positions < 0) | (positions > length - 1)
        if mode == "nearest":
            x = self._resize_nearest(x, axis, positions, rounding)
        else:
            stretch = max(1.0 / scales[i], 1.0) if antialias else 1.0
            weights = self._resize_weights(positions, length, stretch, mode == "cubic", a, exclude).to(x.dtype)
            x = torch.matmul(x.transpose(axis, -1), weights.t()).transpose(axis, -1)
        if transform == "tf_crop_and_resize":
            x = x.masked_fill(beyond.reshape([-1] + [1] * (x.dim() - 1 - axis)), outside)
    return x
