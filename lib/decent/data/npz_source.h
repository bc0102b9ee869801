#pragma once
// A .npz file as a data source.

#include <filesystem>
#include <memory>

#include "decent/data/source.h"

namespace decent {

/// Every array of the file is a field (in the order of their names); its first dimension counts the
/// samples. The arrays are read into memory. Throws UserError as read_npz does, and as
/// open_safetensors_source does.
std::unique_ptr<Source> open_npz_source(const std::filesystem::path& path);

}  // namespace decent
