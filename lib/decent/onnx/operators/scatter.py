"""Elements put into tensors."""

import torch
from torch import Tensor


# ScatterElements (opset 11) and Scatter (opset 9): indices that count from the front.
def _element_indices(self, index: Tensor, size: int) -> Tensor:
    index = index.to(torch.int64)
    return torch.where(index < 0, index + size, index)


# ScatterND (opset 11) without a reduction, or with add.
def _scatter_nd(self, x: Tensor, indices: Tensor, updates: Tensor, add: bool) -> Tensor:
    return torch.index_put(x, self._nd_index(x, indices, 0), updates, add)


# ScatterND (opset 16 and 18), reductions mul, max and min: by rows of x, numbered consecutively.
def _scatter_nd_reduce(self, x: Tensor, indices: Tensor, updates: Tensor, reduce: str) -> Tensor:
    depth = indices.size(-1)
    rows = torch.zeros_like(indices.select(-1, 0))
    count = 1
    for i in range(depth):
        part = indices.select(-1, i)
        rows = rows * x.size(i) + torch.where(part < 0, part + x.size(i), part)
        count = count * x.size(i)
    rest = x.size()[depth:]
    updates = updates.reshape([-1] + rest)
    reduced = torch.index_reduce(x.reshape([count] + rest), 0, rows.reshape([-1]), updates, reduce)
    return reduced.reshape(x.size())
