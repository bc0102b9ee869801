#pragma once
// Tensors of the fake device as tensors of the CPU that share their memory.

#include <ATen/core/Tensor.h>

namespace decent::fake_gpu {

/// The same elements as a tensor of the CPU. An undefined tensor or a tensor of the CPU is returned
/// as it is.
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace decent::fake_gpu
