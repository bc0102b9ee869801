#pragma once
// Memory of one worker that other workers of its machine map: a memfd, which has no name in any
// file system, is outside the limit of /dev/shm, and is gone with the last process that maps it.
//
// It is mapped once, with the size of the machine's memory, and grows inside this mapping. So an
// offset means the same to everyone, and nobody has to map anything when it grows.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "decent/comm/socket.h"

namespace decent {

/// What another process needs to map an arena. Tell it over authenticated connections only.
struct ArenaAddress {
  pid_t process = 0;
  int descriptor = -1;     // of that process
  std::string token;       // random, also in the arena: the descriptor may be another file's by now
  std::int64_t bytes = 0;  // of the mapping
};

class Arena {
 public:
  static constexpr std::int64_t kPage = 4096;

  /// A new arena of this process. Throws UserError if the system refuses, and if the size of files
  /// is limited for this process (ulimit -f), which also limits a memfd.
  static std::shared_ptr<Arena> create();

  /// Maps another process's arena. Throws UserError if that is not allowed or not possible, or if
  /// the descriptor is another file's by now.
  static std::shared_ptr<Arena> open(const ArenaAddress& address);

  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const ArenaAddress& address() const { return address_; }

  /// The same offset is the same byte in every process. Offset 0 is the first byte after the
  /// arena's own page. Only the parts that grow() returned may be touched.
  std::byte* at(std::int64_t offset) const { return base_ + kPage + offset; }
  /// Offset of `pointer`, which may lie anywhere; -1 outside of the arena.
  std::int64_t offset_of(const void* pointer) const;

  /// Grows by `bytes`, rounded up to whole pages of zeros, and returns the offset of the first.
  /// These pages are allocated, so writing to them cannot fail. Only for the owner; any thread.
  /// Throws UserError if the machine does not give that much.
  std::int64_t grow(std::int64_t bytes);

 private:
  Arena(Socket file, ArenaAddress address);

  Socket file_;  // the owner's; closed elsewhere
  ArenaAddress address_;
  std::byte* base_ = nullptr;
  std::mutex growing_;
  std::int64_t size_ = 0;  // the owner's
};

}  // namespace decent
