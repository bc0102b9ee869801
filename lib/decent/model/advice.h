#pragma once
// Advice on data that a model cannot take, and on errors that only appear on a GPU.

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <span>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// What the user can do about `reason`, LibTorch's error from forward on these fields: lines that
/// each begin with a line break, or nothing. Covers numbers of another type than the model's, and
/// images whose channels come last or are missing.
std::string data_advice(const std::string& reason, std::span<const ForwardInput> inputs,
                        std::span<const at::Tensor> tensors, const Model::NamedTensors& parameters);

/// What the user can do about `reason`, an error of `module` on `device`, if it is about tensors
/// that the model creates on the CPU: lines that each begin with a line break, or nothing.
/// core/gpu_errors.h covers the errors of GPUs themselves.
std::string device_advice(const std::string& reason, const torch::jit::Module& module,
                          at::Device device);

/// The message in place of `reason` if forward failed because `module`, which is on the CPU, asks
/// for a GPU; LibTorch's own text is about how LibTorch was built. Nothing if that is not the
/// cause.
std::optional<std::string> gpu_wish(const std::string& reason, const torch::jit::Module& module,
                                    at::Device device);

}  // namespace decent
