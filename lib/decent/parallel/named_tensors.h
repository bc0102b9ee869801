#pragma once
// Tensors with their names.

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace decent {

/// Names and tensors, in order of registration.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The parameters that require a gradient, and those that do not, each in the same order.
NamedTensors trained_part(const NamedTensors& parameters);
NamedTensors untrained_part(const NamedTensors& parameters);

}  // namespace decent
