#pragma once
// Writing the weights of a trained model.

#include <filesystem>

#include "decent/model/model.h"

namespace decent {

/// Every parameter and buffer under its state_dict name (tied ones under each of theirs),
/// row-major. The file is whole or absent; throws WriteError.
void save_safetensors(const Model& model, const std::filesystem::path& path);

}  // namespace decent
