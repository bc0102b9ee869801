#pragma once
// .onnx files as models.

#include <filesystem>
#include <string>

#include "decent/model/import_options.h"
#include "decent/model/model.h"

namespace decent {

/// Imports the file, see import_onnx; a model that was made of it is written back into it. Throws
/// UserError.
OpenedModel open_onnx(const std::filesystem::path& path, const ImportOptions& options);

/// FileExtras::data of a file; empty where it has none or cannot be read.
std::string data_in_onnx(const std::filesystem::path& path);

}  // namespace decent
