// Methods for operators that reduce tensors, compare and make them.

#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

const Helper kReductionHelpers[] = {
    {"_axes", {}, R"(def _axes(self, axes: List[int], rank: int) -> List[int]:
    # none stands for all
    return axes if len(axes) > 0 else [i for i in range(rank)]
)"},
    {"_amax", {}, R"(def _amax(self, x: Tensor, axes: List[int], keepdim: bool) -> Tensor:
    # torch has no largest element of nothing, ONNX has
    if x.numel() == 0:
        return torch.sum(x, axes, keepdim=keepdim) - float("inf")
    return torch.amax(x, axes, keepdim)
)"},
    {"_amin", {}, R"(def _amin(self, x: Tensor, axes: List[int], keepdim: bool) -> Tensor:
    # torch has no smallest element of nothing, ONNX has
    if x.numel() == 0:
        return torch.sum(x, axes, keepdim=keepdim) + float("inf")
    return torch.amin(x, axes, keepdim)
)"},
    {"_prod", {}, R"(def _prod(self, x: Tensor, axes: List[int], keepdim: bool) -> Tensor:
    places: List[int] = []
    for axis in axes:
        places.append(axis + x.dim() if axis < 0 else axis)
    places.sort(reverse=True)
    for place in places:
        x = torch.prod(x, place, keepdim, dtype=x.dtype)
    return x
)"},
    {"_sum", {}, R"(def _sum(self, xs: List[Tensor]) -> Tensor:
    y = xs[0]
    for x in xs[1:]:
        y = y + x
    return y
)"},
    {"_maximum", {}, R"(def _maximum(self, xs: List[Tensor]) -> Tensor:
    y = xs[0]
    for x in xs[1:]:
        y = torch.maximum(y, x)
    return y
)"},
    {"_minimum", {}, R"(def _minimum(self, xs: List[Tensor]) -> Tensor:
    y = xs[0]
    for x in xs[1:]:
        y = torch.minimum(y, x)
    return y
)"},
    {"_sum_before", {}, R"(def _sum_before(self, x: Tensor, axis: int) -> Tensor:
    # cumulative, without the element itself
    first = torch.zeros_like(x.narrow(axis, 0, 1))
    return torch.cat([first, torch.cumsum(x.narrow(axis, 0, x.size(axis) - 1), axis, dtype=x.dtype)], axis)
)"},
    {"_prod_before", {}, R"(def _prod_before(self, x: Tensor, axis: int) -> Tensor:
    # cumulative, without the element itself
    first = torch.ones_like(x.narrow(axis, 0, 1))
    return torch.cat([first, torch.cumprod(x.narrow(axis, 0, x.size(axis) - 1), axis, dtype=x.dtype)], axis)
)"},
    {"_ordered", {}, R"(def _ordered(self, x: Tensor) -> Tensor:
    # uint64 as int64 in the same order
    return torch.view_copy(x, dtype=torch.int64) ^ (-9223372036854775807 - 1)
)"},
    {"_range",
     {"_quotient"},
     R"(def _range(self, start: int, limit: int, delta: int, device: Device) -> Tensor:
    count = -self._quotient(start - limit, delta) if delta > 0 else -self._quotient(limit - start, -delta)
    return torch.arange(max(count, 0), device=device) * delta + start
)"},
    {"_float_range",
     {},
     R"(def _float_range(self, start: float, limit: float, delta: float, device: Device) -> Tensor:
    count = max(-int((start - limit) // delta), 0)
    return torch.arange(count, device=device, dtype=torch.float64) * delta + start
)"},
    {"_eye", {}, R"(def _eye(self, x: Tensor, diagonal: int) -> Tensor:
    rows = torch.arange(x.size(0), device=x.device).unsqueeze(1)
    return rows + diagonal == torch.arange(x.size(1), device=x.device)
)"},
    {"_one_hot",
     {},
     R"(def _one_hot(self, indices: Tensor, depth: int, values: Tensor, axis: int) -> Tensor:
    indices = indices.to(torch.int64)
    indices = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    sizes: List[int] = []
    for i in range(indices.dim()):
        sizes.append(1)
    sizes[axis] = depth
    classes = torch.arange(depth, device=indices.device).reshape(sizes)
    return torch.where(indices == classes, values[1], values[0])
)"},
};

}  // namespace

std::span<const Helper> reduction_helpers() { return kReductionHelpers; }

}  // namespace decent::onnx
