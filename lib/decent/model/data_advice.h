#pragma once
// Advice on data that a model cannot take.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// What the user can do about `reason`, LibTorch's error from forward on these fields: lines that
/// each begin with a line break, or nothing. Covers numbers of another type than the model's, and
/// images whose channels come last or are missing.
std::string data_advice(const std::string& reason, std::span<const ForwardInput> inputs,
                        std::span<const at::Tensor> tensors, const Model::NamedTensors& parameters);

}  // namespace decent
