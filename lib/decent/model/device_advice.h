#pragma once
// Advice on errors that only appear on a GPU.

#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>

namespace decent {

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
