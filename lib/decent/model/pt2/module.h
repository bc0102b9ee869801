#pragma once
// The TorchScript module that a translation of an exported program describes.

#include <torch/csrc/jit/api/module.h>

#include <optional>

#include "decent/pt2/translate/translation.h"

namespace decent {

/// Compiles the source into a module with parameters and buffers of its own. What is one tensor in
/// the archive is one tensor in the module. Throws UserError for element types that this LibTorch
/// lacks, c10::Error if the source does not compile.
torch::jit::Module make_module(const pt2::ModuleSource& source);

/// A tensor of an archive with memory of its own, and with the strides of the export.
at::Tensor to_torch(const pt2::Payload& payload);

/// The element type; nothing if LibTorch has no such type.
std::optional<at::ScalarType> to_torch(pt2::ScalarType type);

}  // namespace decent
