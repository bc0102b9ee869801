// Normalization whose scale is broadcast, and what PyTorch has in Python only.

#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

const Helper kNormalizationHelpers[] = {
    {"_layer_norm",
     {},
     R"(def _layer_norm(self, x: Tensor, axis: int, scale: Tensor, bias: Optional[Tensor], eps: float) -> Tensor:
    shape = x.shape[axis:]
    if scale.shape == shape and (bias is None or bias.shape == shape):
        return torch.layer_norm(x, shape, scale, bias, eps)
    y = torch.layer_norm(x, shape, None, None, eps) * scale
    return y if bias is None else y + bias
)"},
    {"_layer_statistics",
     {},
     R"(def _layer_statistics(self, x: Tensor, axis: int, eps: float) -> Tuple[Tensor, Tensor]:
    # the mean, and 1 / the standard deviation
    first = axis if axis >= 0 else x.dim() + axis
    axes = [i for i in range(first, x.dim())]
    mean = torch.mean(x, axes, keepdim=True)
    deviation = x - mean
    variance = torch.mean(deviation * deviation, axes, keepdim=True)
    return mean, torch.rsqrt(variance + eps)
)"},
    {"_rms_norm",
     {},
     R"(def _rms_norm(self, x: Tensor, axis: int, scale: Tensor, eps: float) -> Tensor:
    shape = x.shape[axis:]
    if scale.shape == shape and scale.dtype == x.dtype:
        return torch.rms_norm(x, shape, scale, eps)
    return torch.rms_norm(x, shape, None, eps) * scale
)"},
    // torch.nn.functional.local_response_norm; of an even size, the place that is one more is
    // behind
    {"_local_response_norm",
     {},
     R"(def _local_response_norm(self, x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    squares = (x * x).flatten(2).unsqueeze(1)
    squares = torch.constant_pad_nd(squares, [0, 0, (size - 1) // 2, size // 2], 0.0)
    sums = torch.avg_pool2d(squares, [size, 1], [1, 1]).squeeze(1).view_as(x)
    return x / torch.pow(sums * alpha + bias, beta)
)"},
    {"_mean_variance_norm",
     {},
     R"(def _mean_variance_norm(self, x: Tensor, axes: List[int]) -> Tensor:
    deviation = x - torch.mean(x, axes, keepdim=True)
    variance = torch.mean(deviation * deviation, axes, keepdim=True)
    return deviation / (torch.sqrt(variance) + 1e-09)
)"},
};

}  // namespace

std::span<const Helper> normalization_helpers() { return kNormalizationHelpers; }

}  // namespace decent::onnx
