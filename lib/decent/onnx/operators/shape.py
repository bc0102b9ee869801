"""Views of tensors in other shapes, by sizes that are known when the model runs."""

from typing import List

from torch import Tensor


# Reshape (opset 5) without allowzero: 0 keeps the dimension.
def _reshape(self, x: Tensor, shape: List[int]) -> Tensor:
    sizes: List[int] = []
    for i, size in enumerate(shape):
        sizes.append(x.size(i) if size == 0 else size)
    return x.reshape(sizes)


# Flatten (opset 9).
def _flatten(self, x: Tensor, axis: int) -> Tensor:
    rows = 1
    for size in x.size()[:axis]:
        rows = rows * size
    columns = 1
    for size in x.size()[axis:]:
        columns = columns * size
    return x.reshape([rows, columns])


# Unsqueeze (opset 1).
def _unsqueeze(self, x: Tensor, axes: List[int]) -> Tensor:
    rank = x.dim() + len(axes)
    places: List[int] = []
    for axis in axes:
        places.append(axis + rank if axis < 0 else axis)
    places.sort()
    for place in places:
        x = x.unsqueeze(place)
    return x


# Transpose (opset 1) without perm.
def _reverse_axes(self, x: Tensor) -> Tensor:
    return x.permute([i for i in range(x.dim() - 1, -1, -1)])


# Expand (opset 8): a size of 1 keeps the dimension; the shape may have fewer dimensions than x.
def _expand(self, x: Tensor, shape: List[int]) -> Tensor:
    sizes: List[int] = []
    for i in range(x.dim() - len(shape)):
        sizes.append(-1)
    for i, size in enumerate(shape):
        keeps = size == 1 and i + x.dim() >= len(shape)
        sizes.append(-1 if keeps else size)
    return x.expand(sizes)
