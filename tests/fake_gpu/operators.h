#pragma once
// Tensors of the fake device as tensors of the CPU that share their memory.

#include <ATen/core/Tensor.h>

namespace decent::fake_gpu {

/// The same elements as a tensor of the CPU. The result of an undefined or CPU tensor is that
/// tensor.
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace decent::fake_gpu
