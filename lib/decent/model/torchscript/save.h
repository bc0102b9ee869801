#pragma once
// Writing a trained model that runs without this program.

#include <filesystem>

#include "decent/model/file_extras.h"
#include "decent/model/model.h"

namespace decent {

/// A TorchScript file in eval mode that torch.jit.load reads, each tensor with storage of its own
/// size, and FileExtras. The model is in the same mode and state as before, without the scalings
/// that the file has. The file is whole or absent; throws WriteError.
void save_torchscript(Model& model, const std::filesystem::path& path,
                      const FileExtras& extras = {});

}  // namespace decent
