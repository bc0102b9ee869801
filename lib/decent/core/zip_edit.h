#pragma once
// More entries in a zip archive that is there already. No torch.

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

/// An entry to add: stored, in place of one of its name. Both outlive what refers to them.
struct ZipAddition {
  std::string_view name;
  std::string_view content;
};

/// What gives `archive` the entries `added`, of different names, in the order of the archive and
/// apart from one another. No other entry moves or changes; the content of one that is replaced
/// stays as bytes that the directory no longer names, unless nothing follows it. Throws UserError,
/// which begins with `what`, for bytes that are no archive with entries.
std::vector<ZipEdit> edits_to_add(std::span<const std::byte> archive,
                                  std::span<const ZipAddition> added, const std::string& what);

}  // namespace decent
