#pragma once
// Safetensors files of any tensors.

#include <filesystem>
#include <map>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// Writes the tensors under their names, row-major. The file is whole or absent; throws WriteError.
void save_tensors(const Model::NamedTensors& tensors, const std::filesystem::path& path,
                  const std::map<std::string, std::string>& metadata);

}  // namespace decent
