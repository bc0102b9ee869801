#include "decent/train/non_finite.h"

#include <ATen/Functions.h>

namespace decent {
namespace {

std::int64_t count_non_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return 0;
  return tensor.numel() - at::isfinite(tensor).sum().item<std::int64_t>();
}

std::string first_bad(const std::string& what, const at::Tensor& tensor, std::int64_t bad) {
  return what + " is the first that is not finite (" + std::to_string(bad) + " of its " +
         std::to_string(tensor.numel()) + " values)";
}

}  // namespace

std::string describe_non_finite(const TorchScriptModel::NamedTensors& parameters,
                                std::span<const ForwardInput> inputs,
                                std::span<const at::Tensor> fields, const at::Tensor& output) {
  for (const auto& [name, parameter] : parameters) {
    if (const std::int64_t bad = count_non_finite(parameter)) {
      return first_bad("parameter '" + name + "'", parameter, bad);
    }
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (const std::int64_t bad = count_non_finite(fields[i])) {
      const std::string name = i < inputs.size() ? "'" + inputs[i].field + "'" : "of the target";
      return first_bad("field " + name + " of the batch", fields[i], bad);
    }
  }
  if (const std::int64_t bad = count_non_finite(output)) {
    return first_bad("the model's output", output, bad);
  }
  return "parameters, batch and output are finite, the loss of them is not";
}

}  // namespace decent
