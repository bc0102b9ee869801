#pragma once
// Refuses files of another format than the data source names. No torch.

#include <cstddef>
#include <span>
#include <string>

#include "decent/core/file_kind.h"

namespace decent {

/// Throws UserError, which says what the file is and what reads it, for a file of a known kind
/// other than `wanted`. Files that are damaged or of no known kind are left to the reader of the
/// format.
void refuse_other_kinds(std::span<const std::byte> bytes, const std::string& file, FileKind wanted);

}  // namespace decent
