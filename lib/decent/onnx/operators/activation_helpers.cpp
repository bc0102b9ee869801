#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

const Helper kActivationHelpers[] = {
    {"_hardmax", {}, R"(def _hardmax(self, x: Tensor, axis: int) -> Tensor:
    # the first of equal ones, as argmax
    return torch.zeros_like(x).scatter(axis, torch.argmax(x, axis, True), 1.0)
)"},
};

}  // namespace

std::span<const Helper> activation_helpers() { return kActivationHelpers; }

}  // namespace decent::onnx
