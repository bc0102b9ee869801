// Methods for operators that change shapes, cut and join.

#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {

namespace {

const Helper kShapeHelpers[] = {
    {"_flatten", {}, R"(def _flatten(self, x: Tensor, axis: int) -> Tensor:
    rows = 1
    for size in x.size()[:axis]:
        rows = rows * size
    columns = 1
    for size in x.size()[axis:]:
        columns = columns * size
    return x.reshape([rows, columns])
)"},
    {"_unsqueeze", {}, R"(def _unsqueeze(self, x: Tensor, axes: List[int]) -> Tensor:
    rank = x.dim() + len(axes)
    places: List[int] = []
    for axis in axes:
        places.append(axis + rank if axis < 0 else axis)
    places.sort()
    for place in places:
        x = x.unsqueeze(place)
    return x
)"},
    {"_reverse_axes", {}, R"(def _reverse_axes(self, x: Tensor) -> Tensor:
    return x.permute([i for i in range(x.dim() - 1, -1, -1)])
)"},
    {"_expand", {}, R"(def _expand(self, x: Tensor, shape: List[int]) -> Tensor:
    # a size of 1 keeps the dimension; the shape may have fewer dimensions than x
    sizes: List[int] = []
    for i in range(x.dim() - len(shape)):
        sizes.append(-1)
    for i, size in enumerate(shape):
        keeps = size == 1 and i + x.dim() >= len(shape)
        sizes.append(-1 if keeps else size)
    return x.expand(sizes)
)"},
    {"_slice_backwards",
     {"_quotient"},
     R"(def _slice_backwards(self, x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    # torch slices forwards only: the same elements forwards, then flipped
    size = x.size(axis)
    first = min(max(start + size if start < 0 else start, 0), size - 1)
    stop = min(max(end + size if end < 0 else end, -1), size - 1)
    count = max(self._quotient(first - stop - step - 1, -step), 0)
    last = first + (count - 1) * step
    if count == 0:
        return torch.slice(x, axis, 0, 0, 1)
    return torch.slice(x, axis, last, first + 1, -step).flip([axis])
)"},
    {"_slice",
     {"_slice_backwards"},
     R"(def _slice(self, x: Tensor, starts: List[int], ends: List[int], axes: List[int], steps: List[int]) -> Tensor:
    for i in range(len(starts)):
        axis = axes[i] if len(axes) > 0 else i
        step = steps[i] if len(steps) > 0 else 1
        if step > 0:
            x = torch.slice(x, axis, starts[i], ends[i], step)
        else:
            x = self._slice_backwards(x, axis, starts[i], ends[i], step)
    return x
)"},
    {"_pad_sizes",
     {},
     R"(def _pad_sizes(self, rank: int, pads: List[int], axes: List[int]) -> List[int]:
    # torch's order: pairs of before and after, from the last dimension on
    sizes: List[int] = []
    for i in range(2 * rank):
        sizes.append(0)
    count = len(pads) // 2
    for i in range(count):
        axis = axes[i] if len(axes) > 0 else i
        place = rank - 1 - (axis + rank if axis < 0 else axis)
        sizes[2 * place] = pads[i]
        sizes[2 * place + 1] = pads[i + count]
    return sizes
)"},
    {"_pad_axis",
     {},
     R"(def _pad_axis(self, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.size(axis)
    place = torch.arange(-before, size + after, device=x.device)
    if mode == "wrap":
        place = place.remainder(size)
    elif mode == "reflect" and size > 1:
        period = 2 * (size - 1)
        place = place.remainder(period)
        place = torch.where(place < size, place, period - place)
    else:
        place = place.clamp(0, size - 1)
    return x.index_select(axis, place)
)"},
    {"_pad",
     {"_pad_axis"},
     R"(def _pad(self, x: Tensor, pads: List[int], axes: List[int], mode: str) -> Tensor:
    count = len(pads) // 2
    for i in range(count):
        axis = axes[i] if len(axes) > 0 else i
        if pads[i] != 0 or pads[i + count] != 0:
            x = self._pad_axis(x, axis, pads[i], pads[i + count], mode)
    return x
)"},
    {"_depth_to_space",
     {"_quotient"},
     R"(def _depth_to_space(self, x: Tensor, block: int) -> Tensor:
    n, depth, height, width = x.size()
    left = self._quotient(depth, block * block)
    x = x.reshape([n, block, block, left, height, width])
    x = x.permute([0, 3, 4, 1, 5, 2])
    return x.reshape([n, left, height * block, width * block])
)"},
    {"_space_to_depth",
     {"_quotient"},
     R"(def _space_to_depth(self, x: Tensor, block: int) -> Tensor:
    n, depth, height, width = x.size()
    rows, columns = self._quotient(height, block), self._quotient(width, block)
    x = x.reshape([n, depth, rows, block, columns, block])
    x = x.permute([0, 3, 5, 1, 2, 4])
    return x.reshape([n, depth * block * block, rows, columns])
)"},
};

}  // namespace

std::span<const Helper> shape_helpers() { return kShapeHelpers; }

}  // namespace decent::onnx
