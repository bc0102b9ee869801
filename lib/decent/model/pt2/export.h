#pragma once
// A trained model that came from a .pt2 file, as a .pt2 file.

#include <filesystem>

#include "decent/model/file_extras.h"
#include "decent/model/model.h"
#include "decent/model/pt2/import.h"

namespace decent {

/// Writes the original archive with the parameters and buffers of `model`, which was made by
/// `import`, in each of its programs. Throws UserError; WriteError.
void export_pt2(const Pt2Import& import, const Model& model, const std::filesystem::path& path,
                const FileExtras& extras);

}  // namespace decent
