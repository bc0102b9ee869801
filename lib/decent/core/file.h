#pragma once
// Files: memory-mapped reading, and writing that is whole or absent.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace decent {

/// A whole file mapped read-only into memory. Movable; unmaps when destroyed.
class MappedFile {
 public:
  /// Throws UserError where the file is missing, is not a regular file or cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The content of a text file. Throws UserError as MappedFile does.
std::string read_text(const std::filesystem::path& path);

/// Writes `path` so that it is whole or absent: a temporary file beside it, fsync, rename. Throws
/// WriteError (the temporary file is removed).
void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);
void write_file(const std::filesystem::path& path, std::string_view content);

/// Creates the folder and its parents. Throws WriteError.
void create_folders(const std::filesystem::path& path);

}  // namespace decent
