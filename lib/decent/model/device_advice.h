#pragma once
// What to do about an error that only shows on a GPU.

#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>

namespace decent {

/// What the user may do about `reason`, which `module` on `device` gave, where it is about tensors
/// that the model makes on the CPU: lines that each begin with a line break, or nothing. What a GPU
/// itself reports is in core/gpu_errors.h.
std::string device_advice(const std::string& reason, const torch::jit::Module& module,
                          at::Device device);

/// What to say in place of `reason` where forward failed since `module`, which is on the CPU, asks
/// for a GPU: LibTorch's text is about how it was built. Nothing where that is not why.
std::optional<std::string> gpu_wish(const std::string& reason, const torch::jit::Module& module,
                                    at::Device device);

}  // namespace decent
