#pragma once
// Files written by torch.jit.save.

#include <filesystem>
#include <string>

#include "decent/model/import_options.h"
#include "decent/model/model.h"

namespace decent {

/// Loads the module onto the CPU. Throws UserError, saying what the file is and how to export it,
/// for files of other kinds and for a module that was frozen for inference.
OpenedModel open_torchscript(const std::filesystem::path& path, const ImportOptions& options);

/// Throws UserError if there is no readable file.
void check_is_file(const std::filesystem::path& path);

/// Throws UserError: "model 'x' `what`", and how to export a model from Python.
[[noreturn]] void refuse_model_file(const std::filesystem::path& path, const std::string& what);

}  // namespace decent
