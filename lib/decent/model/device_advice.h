#pragma once
// What to do about an error that only shows on a GPU.

#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>

namespace decent {

/// What the user may do about `reason`, an error of LibTorch: lines that each begin with a line
/// break, or nothing. About memory that is short, and about what a kernel found in its inputs.
std::string device_advice(const std::string& reason);

/// The same for a reason that `module`, on `device`, gave: also about tensors that the model makes
/// on the CPU.
std::string device_advice(const std::string& reason, const torch::jit::Module& module,
                          at::Device device);

/// What to say in place of `reason` where forward failed since `module`, which is on the CPU, asks
/// for a GPU: LibTorch's text is about how it was built. Nothing where that is not why.
std::optional<std::string> gpu_wish(const std::string& reason, const torch::jit::Module& module,
                                    at::Device device);

}  // namespace decent
