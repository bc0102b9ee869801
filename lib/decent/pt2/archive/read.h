#pragma once
// Reading a .pt2 file (torch.export.save) of unknown origin.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "decent/core/file.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

struct Archive {
  std::shared_ptr<const MappedFile> file;  // payloads point into it
  std::vector<ExportedProgram> programs;   // by name; at least one

  const std::filesystem::path& path() const { return file->path(); }
  /// The beginning of messages about it: "model 'net.pt2'".
  std::string what() const;
  /// nullptr if there is none.
  const ExportedProgram* find(std::string_view program) const;
};

/// Reads all programs of an archive, and checks every count, size and place before relying on it.
/// The file is mapped; tensors stay where they are. No code of the archive is run, and no pickle is
/// read. Throws UserError naming the file and the place in it.
Archive read_archive(const std::filesystem::path& path);
/// The same for a file that is already mapped.
Archive read_archive(std::shared_ptr<const MappedFile> file);

}  // namespace decent::pt2
