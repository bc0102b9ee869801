#include "decent/core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/host.h"

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

 private:
  int fd_;
};

std::string reason(int error) { return std::strerror(error); }

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // bytes that are copied at once
constexpr std::string_view kTemporaryEnd = ".tmp";
constexpr std::size_t kRandomDigits = 8;  // between the name and kTemporaryEnd

// Without O_NONBLOCK, opening a pipe would wait for a writer. It has no effect on regular files.
int open_to_read(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw UserError("cannot read '" + path.string() + "': " + reason(errno));
  return fd;
}

// Creates a file with a new name and stores the name in `temporary`. Returns the descriptor, or a
// negative number and errno if it fails.
int create_beside(const std::filesystem::path& path, std::filesystem::path& temporary) {
  constexpr int kMaxTries = 100;
  int fd = -1;
  for (int i = 0; i < kMaxTries && fd < 0 && (i == 0 || errno == EEXIST); ++i) {
    temporary = path.string() + "." + random_name(kRandomDigits) + std::string(kTemporaryEnd);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  return fd;
}

void sync_by(int (*sync)(int), const std::filesystem::path& folder_path) {
  const Descriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int error = folder.get() < 0 ? errno : sync(folder.get()) != 0 ? errno : 0;
  // Some file systems (FUSE, SMB) have no fsync for folders: nothing more can be done there.
  if (error == 0 || error == EINVAL || error == ENOTSUP) return;
  throw WriteError("cannot write to the folder '" + folder_path.string() + "': " + reason(error));
}

// Some file systems (FUSE, NFS) do not support RENAME_NOREPLACE; there a check before the rename
// must do.
int rename_unless_there(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  struct stat info {};
  if (::lstat(to, &info) != 0) return ::rename(from, to);
  errno = EEXIST;
  return -1;
}

// ---- copying out of a mapped file that may be truncated meanwhile -----------------------------
//
// If a page is gone, the kernel sends SIGBUS at the instruction that touches it. The first copy
// installs a handler for this signal, for the whole process, which ends the copy that touched
// the page. A SIGBUS of any other origin goes to the previous handler. Reading by pread() would
// need no handler, but costs a system call for each sample.

// Where this thread goes on if its copy fails; null while it copies nothing.
thread_local sigjmp_buf* volatile on_bus_error = nullptr;

struct sigaction handler_before {};

// The failed instruction runs again, under the previous handler.
void pass_on() { ::sigaction(SIGBUS, &handler_before, nullptr); }

extern "C" void handle_bus_error(int) {
  if (on_bus_error != nullptr) siglongjmp(*on_bus_error, 1);
  pass_on();
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = handle_bus_error;
    action.sa_flags = SA_NODEFER;  // the handler is left by a jump, which does not restore the mask
    ::sigaction(SIGBUS, &action, &handler_before);
  });
}

// Like memcpy, but returns false if the memory at `from` belongs to a file that was truncated. The
// content of `to` is unspecified then. Any thread.
bool copy_mapped(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return true;  // memcpy takes no null pointers
  install_handler();
  sigjmp_buf here;
  if (sigsetjmp(here, /*savemask=*/0) != 0) {
    on_bus_error = nullptr;
    return false;
  }
  on_bus_error = &here;
  std::memcpy(to, from, bytes);
  on_bus_error = nullptr;
  return true;
}

}  // namespace

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

bool is_temporary_of(std::string_view name, std::string_view final_name) {
  if (name.size() != final_name.size() + 1 + kRandomDigits + kTemporaryEnd.size()) return false;
  if (!name.starts_with(final_name) || !name.ends_with(kTemporaryEnd)) return false;
  name.remove_prefix(final_name.size());
  return name.front() == '.' &&
         name.substr(1, kRandomDigits).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos;
}

void check_is_no_pipe(const std::filesystem::path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0 || !S_ISFIFO(there.st_mode)) return;
  throw WriteError("cannot write '" + path.string() + "': it is a pipe, not a file");
}

bool stands_at(int fd, const std::filesystem::path& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Descriptor file(open_to_read(path));
  map(file.get());
}

MappedFile::MappedFile(int fd, const std::filesystem::path& path) : path_(path) { map(fd); }

void MappedFile::map(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    throw UserError("cannot read '" + path_.string() + "': " + reason(errno));
  }
  if (S_ISDIR(info.st_mode))
    throw UserError("cannot read '" + path_.string() + "': not a file but a folder");
  if (!S_ISREG(info.st_mode)) throw UserError("cannot read '" + path_.string() + "': not a file");
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;  // an empty mapping is an error to mmap
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) throw UserError("cannot map '" + path_.string() + "': " + reason(errno));
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

void MappedFile::copy(std::size_t offset, std::span<std::byte> out) const {
  if (copy_mapped(out.data(), data_ + offset, out.size())) return;
  throw UserError("'" + path_.string() + "' has lost its bytes from " + std::to_string(offset) +
                  " on: it was truncated while it was in use, or its disk fails");
}

std::string read_text(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (file.bytes().size() > kMostText) {
    throw UserError("'" + path.string() + "' has " + std::to_string(file.bytes().size()) +
                    " bytes, and a file of its kind is read up to 1 GiB. It is damaged or another "
                    "file: restore it, or move it away");
  }
  std::string text(file.bytes().size(), '\0');
  file.copy(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view line, bool ended)>& act) {
  const MappedFile file(path);
  std::string held;  // always begins at the start of a line
  for (std::size_t offset = 0; offset < file.bytes().size();) {
    const std::size_t old = held.size();
    held.resize(old + std::min(kPieceBytes, file.bytes().size() - offset));
    file.copy(offset, std::as_writable_bytes(std::span(held).subspan(old)));
    offset += held.size() - old;
    std::size_t begin = 0;
    for (std::size_t end = held.find('\n', old); end != std::string::npos;
         end = held.find('\n', begin)) {
      act(std::string_view(held).substr(begin, end - begin), true);
      begin = end + 1;
    }
    held.erase(0, begin);
    if (held.size() > kMostLine) {
      throw UserError("'" + path.string() + "' has a line of more than 16 MiB, around byte " +
                      std::to_string(offset) +
                      ". It is damaged or another file: restore it, or move it away");
    }
  }
  if (!held.empty()) act(held, false);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  fd_ = create_beside(path_, temporary_);
  if (fd_ < 0) fail(errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) noexcept {
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

void AtomicFile::check() const {
  if (error_ != 0) fail(error_);
}

void AtomicFile::commit() {
  sync();
  rename();
  sync_folder(folder_of(path_));
}

void AtomicFile::sync() {
  if (error_ != 0) fail(error_);
  if (::fsync(fd_) != 0) fail(errno);
  // Closing can report a failed write too (quota, network file systems).
  if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
}

void AtomicFile::rename() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void AtomicFile::rename_as_new() {
  if (rename_unless_there(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void AtomicFile::fail(int error) const {
  throw WriteError("cannot write '" + path_.string() + "': " + reason(error));
}

void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  AtomicFile file(path);
  for (std::string_view piece : pieces) file.write(piece);
  file.commit();
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

void sync_folder(const std::filesystem::path& path) { sync_by(::fsync, path); }

void sync_tree(const std::filesystem::path& path) { sync_by(::syncfs, path); }

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw WriteError("cannot rename '" + from.string() + "' to '" + to.string() +
                     "': " + reason(errno));
  }
  sync_folder(folder_of(to));
}

}  // namespace decent
