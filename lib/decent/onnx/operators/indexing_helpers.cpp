// Methods for operators that pick elements, or put them, by index.

#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

const Helper kIndexingHelpers[] = {
    {"_take", {}, R"(def _take(self, x: Tensor, axis: int, index: Tensor) -> Tensor:
    # an axis counted from the end
    picked = x.movedim(axis, 0)[index]
    places: List[int] = []
    for i in range(index.dim()):
        places.append(axis + x.dim() + i)
    return picked.movedim([i for i in range(index.dim())], places)
)"},
    {"_element_indices", {}, R"(def _element_indices(self, index: Tensor, size: int) -> Tensor:
    index = index.to(torch.int64)
    return torch.where(index < 0, index + size, index)
)"},
    {"_nd_index",
     {},
     R"(def _nd_index(self, x: Tensor, indices: Tensor, batch_dims: int) -> List[Optional[Tensor]]:
    # one tensor of indices for every dimension of x that is indexed
    parts: List[Optional[Tensor]] = []
    for i in range(batch_dims):
        sizes: List[int] = []
        for j in range(indices.dim() - 1):
            sizes.append(x.size(i) if j == i else 1)
        parts.append(torch.arange(x.size(i), device=x.device).reshape(sizes))
    for part in indices.unbind(-1):
        parts.append(part)
    return parts
)"},
    {"_gather_nd",
     {"_nd_index"},
     R"(def _gather_nd(self, x: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    return torch.index(x, self._nd_index(x, indices, batch_dims))
)"},
    {"_scatter_nd",
     {"_nd_index"},
     R"(def _scatter_nd(self, x: Tensor, indices: Tensor, updates: Tensor, add: bool) -> Tensor:
    return torch.index_put(x, self._nd_index(x, indices, 0), updates, add)
)"},
    {"_scatter_nd_reduce",
     {},
     R"(def _scatter_nd_reduce(self, x: Tensor, indices: Tensor, updates: Tensor, reduce: str) -> Tensor:
    # rows of x, numbered through
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
)"},
    {"_top_k",
     {},
     R"(def _top_k(self, x: Tensor, k: int, axis: int, largest: bool) -> Tuple[Tensor, Tensor]:
    # of equal elements the first come first, which torch.topk does not promise
    values, indices = torch.sort(x, stable=True, dim=axis, descending=largest)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)
)"},
    {"_unique",
     {},
     R"(def _unique(self, x: Tensor, axis: int, by_value: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    # with where each is found first; in the order of that, or of the values
    values, inverse, counts = torch.unique_dim(x, axis, True, True, True)
    places = torch.arange(inverse.size(0), device=x.device)
    first = torch.full_like(counts, inverse.size(0)).scatter_reduce(0, inverse, places, "amin")
    if by_value:
        return values, first, inverse, counts
    order = first.argsort()
    return values.index_select(axis, order), first[order], order.argsort()[inverse], counts[order]
)"},
    {"_erased", {}, R"(def _erased(self, sequence: List[Tensor], place: int) -> List[Tensor]:
    place = place + len(sequence) if place < 0 else place
    return sequence[:place] + sequence[place + 1:]
)"},
    {"_reverse_sequence",
     {},
     R"(def _reverse_sequence(self, x: Tensor, lengths: Tensor, time_axis: int) -> Tensor:
    time = torch.arange(x.size(time_axis), device=x.device).unsqueeze(1)
    place = torch.where(time < lengths, lengths - 1 - time, time)
    batch = torch.arange(x.size(1 - time_axis), device=x.device)
    if time_axis == 0:
        return x[place, batch]
    return x[batch.unsqueeze(1), place.t()]
)"},
};

}  // namespace

std::span<const Helper> indexing_helpers() { return kIndexingHelpers; }

}  // namespace decent::onnx
