#pragma once
// Where a loss that is not finite comes from.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "decent/model/torchscript_model.h"

namespace decent {

/// Names the first of these that is not finite: a parameter (in order of registration), a field of
/// the batch, the model's output; or the loss itself. E.g. "parameter 'fc.weight' is the first that
/// is not finite (3 of its 512 values)".
std::string describe_non_finite(const TorchScriptModel::NamedTensors& parameters,
                                std::span<const ForwardInput> inputs,
                                std::span<const at::Tensor> fields, const at::Tensor& output);

}  // namespace decent
