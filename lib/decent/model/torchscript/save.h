#pragma once
// Writing a trained model so that it runs without this program.

#include <filesystem>

#include "decent/model/file_extras.h"
#include "decent/model/model.h"

namespace decent {

/// Writes a TorchScript file in eval mode for torch.jit.load, each tensor with storage of its own
/// size, and FileExtras. The model keeps its mode and state, and does not get the file's scalings.
/// The file is whole or absent; throws WriteError.
void save_torchscript(Model& model, const std::filesystem::path& path,
                      const FileExtras& extras = {});

}  // namespace decent
