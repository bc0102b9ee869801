#pragma once
// The TorchScript module that a translation of an exported program describes.

#include <torch/csrc/jit/api/module.h>

#include <optional>

#include "decent/pt2/translate/translation.h"

namespace decent {

/// Compiles the source, with parameters and buffers of its own; what is one tensor in the archive
/// is one in the module. Throws UserError for elements that PyTorch lacks here, c10::Error where
/// the source does not compile.
torch::jit::Module make_module(const pt2::ModuleSource& source);

/// A tensor of an archive with memory of its own, laid out as the export had it.
at::Tensor to_torch(const pt2::Payload& payload);

/// The element type; nothing where LibTorch has none for it.
std::optional<at::ScalarType> to_torch(pt2::ScalarType type);

}  // namespace decent
