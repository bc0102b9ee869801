#pragma once
// Writing the weights of a trained model.

#include <filesystem>

#include "decent/model/file_extras.h"
#include "decent/model/model.h"

namespace decent {

/// Writes every parameter and buffer under its state_dict name (tied ones under each of their
/// names), row-major, and FileExtras::data in the metadata. The file is whole or absent; throws
/// WriteError.
void save_safetensors(const Model& model, const std::filesystem::path& path,
                      const FileExtras& extras = {});

}  // namespace decent
