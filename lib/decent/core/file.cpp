#include "decent/core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "decent/core/error.h"

namespace decent {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  // Closing can report a failed write (quota, network file systems), so a writer asks for its
  // result.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

std::string reason(int error) { return std::strerror(error); }

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw WriteError(reason(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_temporary(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) throw WriteError(reason(errno));
  for (std::string_view piece : pieces) write_all(file.get(), piece);
  if (::fsync(file.get()) != 0 || file.close() != 0) throw WriteError(reason(errno));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) {
    throw UserError("cannot read '" + path.string() + "': " + reason(errno));
  }
  if (!S_ISREG(info.st_mode)) throw UserError("cannot read '" + path.string() + "': not a file");
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;  // an empty mapping is an error to mmap
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) throw UserError("cannot map '" + path.string() + "': " + reason(errno));
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::string read_text(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    write_temporary(temporary, pieces);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw WriteError(reason(errno));
  } catch (const WriteError& error) {
    ::unlink(temporary.c_str());
    throw WriteError("cannot write '" + path.string() + "': " + error.what());
  }
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, std::span(&content, 1));
}

void create_folders(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed)
    throw WriteError("cannot create the folder '" + path.string() + "': " + failed.message());
}

}  // namespace decent
