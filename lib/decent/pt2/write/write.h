#pragma once
// Writes an archive back: the original file with new elements in its tensors, and new records.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "decent/pt2/archive/read.h"

namespace decent::pt2 {

/// Fills `elements` with the new elements of a tensor, in its own type, little-endian and
/// row-major: count() times size_of(dtype) bytes. Returns false and does not touch `elements` if
/// the tensor keeps its old ones.
using NewElements = std::function<bool(const ExportedProgram& program, const std::string& name,
                                       const Payload& payload, std::span<std::byte> elements)>;

/// What differs in the written archive from the original.
struct Changes {
  NewElements elements;
  /// Records by name ("models/model.json", "extra/note.txt"), which replace records of the archive
  /// or are added to them.
  std::map<std::string, std::string> records = {};
};

/// Writes `archive` to `path`, whole or not at all. `changes.elements` is called once for each
/// weight and each constant of each program, in the order of the file; for tied weights the last
/// one counts. Everything else, including unknown records, is copied byte for byte: without changes
/// the written file equals the original. Memory is allocated for one record at a time. Throws
/// WriteError; UserError if the original was truncated meanwhile.
void write_archive(const Archive& archive, const std::filesystem::path& path,
                   const Changes& changes);

}  // namespace decent::pt2
