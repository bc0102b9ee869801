#pragma once
// The TorchScript module that a translation of an ONNX graph describes.

#include <torch/csrc/jit/api/module.h>

#include "decent/onnx/translate/translation.h"

namespace decent {

/// Compiles the source into a module with parameters and buffers of its own. Throws c10::Error if
/// the source is wrong, which is a bug of the translation.
torch::jit::Module make_module(const onnx::ModuleSource& source);

/// An onnx::Evaluate that uses LibTorch. Throws Unsupported with LibTorch's reason.
std::vector<onnx::Tensor> evaluate_module(const onnx::ModuleSource& source);

/// A tensor with memory of its own. Throws UserError for types that PyTorch lacks.
at::Tensor to_torch(const onnx::Tensor& tensor);

/// The elements and type of a tensor on the CPU; without a name.
onnx::Tensor from_torch(const at::Tensor& tensor);

}  // namespace decent
