#pragma once
// .pt2 files (torch.export) as models.

#include <filesystem>

#include "decent/model/import_options.h"
#include "decent/model/model.h"

namespace decent {

/// Reads, translates and compiles. The resulting model is written back as this file. Throws
/// UserError.
OpenedModel open_pt2(const std::filesystem::path& path, const ImportOptions& options);

}  // namespace decent
