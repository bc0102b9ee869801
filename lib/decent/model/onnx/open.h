#pragma once
// .onnx files as models.

#include <filesystem>
#include <string>

#include "decent/model/import_options.h"
#include "decent/model/model.h"

namespace decent {

/// Imports the file, see import_onnx. The resulting model is written back as this file. Throws
/// UserError.
OpenedModel open_onnx(const std::filesystem::path& path, const ImportOptions& options);

/// FileExtras::data of a file; empty if it has none or cannot be read.
std::string data_in_onnx(const std::filesystem::path& path);

}  // namespace decent
