#pragma once
// A .pt2 file as a TorchScript module that can be trained.

#include <torch/csrc/jit/api/module.h>

#include <filesystem>

#include "decent/pt2/archive/read.h"
#include "decent/pt2/translate/translation.h"

namespace decent {

/// The result of importing a file.
struct Pt2Import {
  pt2::Archive archive;
  pt2::Programs programs;  // of the archive
  pt2::Translation translation;
  torch::jit::Module module;
};

/// Reads, translates and compiles. Throws UserError.
Pt2Import import_pt2(const std::filesystem::path& path);

}  // namespace decent
