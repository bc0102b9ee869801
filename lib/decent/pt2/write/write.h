#pragma once
// Writing an archive back: the original file with new elements in its tensors, and new records.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "decent/pt2/archive/read.h"

namespace decent::pt2 {

/// Fills `elements` with the new elements of a tensor, in its own type, little-endian and
/// row-major: count() times size_of(dtype) bytes. Gives false, and leaves them alone, where it
/// keeps those that it has.
using NewElements = std::function<bool(const ExportedProgram& program, const std::string& name,
                                       const Payload& payload, std::span<std::byte> elements)>;

/// What a written archive has in place of the original.
struct Changes {
  NewElements elements;
  /// Records by their names ("models/model.json", "extra/note.txt"), in place of those of the
  /// archive or besides them.
  std::map<std::string, std::string> records = {};
};

/// Writes `archive` to `path`, whole or not at all. `changes.elements` is asked once for each
/// weight and each constant of each program, in the order in which they lie in the file; of tied
/// weights the last counts. Everything else, records that are not known here included, is copied
/// byte for byte: without changes the written file is the original one. Memory is asked for one
/// record at a time. Throws WriteError; UserError where the original was truncated meanwhile.
void write_archive(const Archive& archive, const std::filesystem::path& path,
                   const Changes& changes);

}  // namespace decent::pt2
