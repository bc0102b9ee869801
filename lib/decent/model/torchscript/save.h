#pragma once
// Writing a trained model. Files are whole or absent; errors are WriteError.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/model/model.h"

namespace decent {

/// A TorchScript file in eval mode that torch.jit.load reads, each tensor with storage of its own
/// size. The model is in the same mode and state as before.
void save_torchscript(Model& model, const std::filesystem::path& path);

/// Every parameter and buffer under its state_dict name (tied ones under each of theirs),
/// row-major.
void save_safetensors(const Model& model, const std::filesystem::path& path);

}  // namespace decent
