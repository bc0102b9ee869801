#pragma once
// Files for fuzz targets of formats that are read by their paths.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "decent/core/file.h"

namespace decent::fuzzing {

/// An empty folder, in memory where there is a place for that. Removed at the end.
class Folder {
 public:
  Folder() {
    const std::filesystem::path memory = "/dev/shm";
    const bool has_memory = ::access(memory.c_str(), W_OK) == 0;
    std::string name =
        (has_memory ? memory : std::filesystem::temp_directory_path()) / "decent_fuzz.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A file in memory, as the file system is too slow; `path` is its name in messages.
inline std::shared_ptr<const MappedFile> file_of(std::string_view bytes,
                                                 const std::filesystem::path& path) {
  const int fd = ::memfd_create("input", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("no memory for the input");
  }
  auto file = std::make_shared<const MappedFile>(fd, path);
  ::close(fd);
  return file;
}

}  // namespace decent::fuzzing
