#pragma once
// What to do about data that a model cannot take.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// What the user may do about `reason`, the error of LibTorch that forward ended in on these
/// fields: lines that each begin with a line break, or nothing. About numbers of another type than
/// the model's, and about images whose channels stand last or are missing.
std::string data_advice(const std::string& reason, std::span<const ForwardInput> inputs,
                        std::span<const at::Tensor> tensors, const Model::NamedTensors& parameters);

}  // namespace decent
