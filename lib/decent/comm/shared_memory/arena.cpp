#include "decent/comm/shared_memory/arena.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/host.h"

namespace decent {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw UserError(what + ": " + std::generic_category().message(errno));
}

// Growing beyond the limit would end the process (SIGXFSZ).
void refuse_limited_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  throw UserError("the size of files is limited (ulimit -f), and shared memory counts as a file");
}

Socket make_file() {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
#ifdef MFD_NOEXEC_SEAL
  // MFD_NOEXEC_SEAL exists since Linux 6.3, which logs programs that do not use it.
  Socket file(::memfd_create("decent-train", flags | MFD_NOEXEC_SEAL));
  if (file.open() || errno != EINVAL) return file;
#endif
  return Socket(::memfd_create("decent-train", flags));
}

// Puts memory behind a part of the file. Returns an error number.
int reserve(const Socket& file, std::int64_t offset, std::int64_t bytes) {
  while (::fallocate(file.descriptor(), 0, offset, bytes) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::byte* map(const Socket& file, std::int64_t bytes) {
  void* const base = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file.descriptor(), 0);
  if (base == MAP_FAILED) fail("shared memory cannot be mapped");
  ::madvise(base, static_cast<std::size_t>(bytes),
            MADV_DONTDUMP);  // keeps the sparse mapping out of core files
  return static_cast<std::byte*>(base);
}

}  // namespace

Arena::Arena(Socket file, ArenaAddress address)
    : file_(std::move(file)),
      address_(std::move(address)),
      base_(map(file_, kPage + address_.bytes)) {}

Arena::~Arena() { ::munmap(base_, static_cast<std::size_t>(kPage + address_.bytes)); }

std::shared_ptr<Arena> Arena::create() {
  refuse_limited_files();
  Socket file = make_file();
  if (!file.open()) fail("shared memory cannot be made (memfd_create)");
  errno = reserve(file, 0, Arena::kPage);
  if (errno != 0) fail("shared memory cannot be made (fallocate)");
  // Nobody can take memory away from under those who map it.
  ::fcntl(file.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK);
  ArenaAddress address{.process = ::getpid(),
                       .descriptor = file.descriptor(),
                       .token = random_name(),
                       .bytes = machine_memory()};
  std::shared_ptr<Arena> arena(new Arena(std::move(file), std::move(address)));
  const std::string& token = arena->address_.token;
  std::memcpy(arena->base_, token.data(), token.size());
  return arena;
}

std::shared_ptr<Arena> Arena::open(const ArenaAddress& address) {
  const std::string path =
      "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
  Socket file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) fail("'" + path + "', the memory of another worker, cannot be opened");
  std::string token(address.token.size(), '\0');
  const ssize_t read = ::pread(file.descriptor(), token.data(), token.size(), 0);
  if (read != std::ssize(token) || token != address.token)
    throw UserError("'" + path + "' is not the memory of another worker");
  std::shared_ptr<Arena> arena(new Arena(std::move(file), address));
  arena->file_.close();
  return arena;
}

std::int64_t Arena::offset_of(const void* pointer) const {
  const auto* const byte = static_cast<const std::byte*>(pointer);
  const bool inside = byte >= at(0) && byte < at(address_.bytes);
  return inside ? byte - at(0) : -1;
}

std::int64_t Arena::grow(std::int64_t bytes) {
  const std::int64_t rounded = (bytes + kPage - 1) / kPage * kPage;
  const std::lock_guard lock(growing_);
  const int error =
      rounded > address_.bytes - size_ ? ENOMEM : reserve(file_, kPage + size_, rounded);
  if (error != 0) {
    throw UserError(
        "no memory for " + std::to_string(bytes >> 20) +
        " MiB that the workers of this machine share: " + std::generic_category().message(error));
  }
  return std::exchange(size_, size_ + rounded);
}

}  // namespace decent
