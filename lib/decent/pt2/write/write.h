#pragma once
// Writing an archive back: the original file with new elements in its tensors.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "decent/pt2/archive/read.h"

namespace decent::pt2 {

/// Fills `elements` with the new elements of a tensor, in its own type, little-endian and
/// row-major: count() times size_of(dtype) bytes. Gives false, and leaves them alone, where it
/// keeps those that it has.
using NewElements = std::function<bool(const ExportedProgram& program, const std::string& name,
                                       const Payload& payload, std::span<std::byte> elements)>;

/// A file in the archive's folder "extra", as extra_files of torch.export.save.
struct ExtraFile {
  std::string name;
  std::string content;
};

/// Writes `archive` to `path`, whole or not at all. `new_elements` is asked once for each weight
/// and each constant of each program, in the order in which they lie in the file; of tied weights
/// the last counts. Everything else, records that are not known here included, is copied byte for
/// byte: without new elements the written file is the original one. `extra` comes in place of one
/// of its name. Memory is asked for one record at a time. Throws WriteError; UserError where the
/// original was truncated meanwhile.
void write_archive(const Archive& archive, const std::filesystem::path& path,
                   const NewElements& new_elements, const ExtraFile* extra = nullptr);

}  // namespace decent::pt2
