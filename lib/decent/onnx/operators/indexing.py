"""Elements picked out of tensors."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor


# Gather (opset 1) and GatherElements (opset 11): indices that count from the front.
def _not_negative(self, index: Tensor, size: int) -> Tensor:
    return torch.where(index < 0, index + size, index)


# Gather (opset 1) along an axis counted from the end.
def _take(self, x: Tensor, axis: int, index: Tensor) -> Tensor:
    picked = x.movedim(axis, 0)[index]
    places: List[int] = []
    for i in range(index.dim()):
        places.append(axis + x.dim() + i)
    return picked.movedim([i for i in range(index.dim())], places)


# GatherND and ScatterND (opset 11): one tensor of indices for every dimension of x that is indexed.
def _nd_index(self, x: Tensor, indices: Tensor, batch_dims: int) -> List[Optional[Tensor]]:
    parts: List[Optional[Tensor]] = []
    for i in range(batch_dims):
        sizes: List[int] = []
        for j in range(indices.dim() - 1):
            sizes.append(x.size(i) if j == i else 1)
        parts.append(torch.arange(x.size(i), device=x.device).reshape(sizes))
    for part in indices.unbind(-1):
        parts.append(part)
    return parts


# GatherND (opset 11; batch_dims is opset 12's).
def _gather_nd(self, x: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    return torch.index(x, self._nd_index(x, indices, batch_dims))


# TopK (opset 1). The first of equal elements comes first, which torch.topk does not guarantee.
def _top_k(self, x: Tensor, k: int, axis: int, largest: bool) -> Tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, stable=True, dim=axis, descending=largest)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)


# Unique (opset 11), with the place where each is found first; in the order of these places, or of the values.
def _unique(self, x: Tensor, axis: int, by_value: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    values, inverse, counts = torch.unique_dim(x, axis, True, True, True)
    places = torch.arange(inverse.size(0), device=x.device)
    first = torch.full_like(counts, inverse.size(0)).scatter_reduce(0, inverse, places, "amin")
    if by_value:
        return values, first, inverse, counts
    order = first.argsort()
    return values.index_select(axis, order), first[order], order.argsort()[inverse], counts[order]


# ReverseSequence (opset 10).
def _reverse_sequence(self, x: Tensor, lengths: Tensor, time_axis: int) -> Tensor:
    time = torch.arange(x.size(time_axis), device=x.device).unsqueeze(1)
    place = torch.where(time < lengths, lengths - 1 - time, time)
    batch = torch.arange(x.size(1 - time_axis), device=x.device)
    if time_axis == 0:
        return x[place, batch]
    return x[batch.unsqueeze(1), place.t()]
