#pragma once
// Adds entries to an existing zip archive. No torch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// Replaces the archive's bytes from `begin` up to `end`, possibly none, by `bytes`.
struct ZipEdit {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string bytes = {};
};

/// An entry to add, uncompressed; it replaces an entry of the same name. Both views must stay valid
/// while it is used.
struct ZipAddition {
  std::string_view name;
  std::string_view content;
};

/// The edits that add the entries `added`, whose names must differ, to `archive`. The edits are in
/// the order of the archive and do not overlap. No other entry moves or changes. The content of a
/// replaced entry stays as bytes that the directory no longer names, unless no kept entry follows
/// it. Throws UserError, which begins with `what`, for bytes that are no archive with entries.
std::vector<ZipEdit> edits_to_add(std::span<const std::byte> archive,
                                  std::span<const ZipAddition> added, const std::string& what);

}  // namespace decent
