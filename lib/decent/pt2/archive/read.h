#pragma once
// Reading a .pt2 file (torch.export.save) that may come from anywhere.

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
  /// What messages about it begin with: "model 'net.pt2'".
  std::string what() const;
  /// nullptr where there is none.
  const ExportedProgram* find(std::string_view program) const;
};

/// Reads and checks all programs of an archive: every count, size and place before it is relied
/// on. The file is mapped; tensors stay where they are. No code of the archive is run, and no
/// pickle is read. Throws UserError naming the file and the place in it.
Archive read_archive(const std::filesystem::path& path);
/// The same of a file that is mapped already.
Archive read_archive(std::shared_ptr<const MappedFile> file);

}  // namespace decent::pt2
