#pragma once
// Files that are not of the format that a data source names. No torch.

#include <cstddef>
#include <span>
#include <string>

#include "decent/core/file_kind.h"

namespace decent {

/// Throws UserError, which says what the file is and what reads it, for a file of a known kind that
/// is not `wanted`. Whatever is damaged, or of no known kind, is left to the reader of the format.
void refuse_other_kinds(std::span<const std::byte> bytes, const std::string& file, FileKind wanted);

}  // namespace decent
