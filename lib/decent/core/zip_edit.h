#pragma once
// Another entry in a zip archive that is there already. No torch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// `bytes` stand in place of those of the archive from `begin` up to `end`, which may be none.
struct ZipEdit {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string bytes = {};
};

/// What gives `archive` the stored entry `name` with `content`, in place of one of that name: in
/// the order of the archive, and apart from one another. No other entry moves or changes. Throws
/// UserError, which begins with `what`, for bytes that are no archive with entries.
std::vector<ZipEdit> edits_to_add(std::span<const std::byte> archive, std::string_view name,
                                  std::string_view content, const std::string& what);

}  // namespace decent
