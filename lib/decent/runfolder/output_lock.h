#pragma once
// One run at a time in an output folder: an advisory lock (flock) on the file .lock in it. The
// kernel frees the lock when the process ends, however it ends; docs/checkpoints.md says what the
// lock does on network file systems.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace decent {

/// Who holds a lock, as written in its file.
struct LockHolder {
  std::string session;  // the same for all processes that were started together
  std::string host;
  std::string process;  // its process id
  std::string since;    // "2026-05-04 13:37:00 UTC"
};

/// "the run of process 123 on 'node7', since 2026-05-04 13:37:00 UTC"
std::string text_of(const LockHolder& holder);

/// Who holds the lock of the folder; nullopt if nobody does, or if there is no such folder. If the
/// holder has not written its identity yet, the fields are empty. Writes nothing.
std::optional<LockHolder> find_holder(const std::filesystem::path& folder);

/// Throws UserError saying who holds the folder, if somebody still does after a second. It waits
/// because processes that only look hold the lock briefly, and killed processes take time to end.
void check_not_held(const std::filesystem::path& folder);

/// Not thread-safe.
class OutputLock {
 public:
  explicit OutputLock(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Removes the file and frees the lock. Also removes the folder if take() created it and it is
  /// still empty.
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  /// Takes the lock for the processes of `session`, one of which may hold it already. Creates the
  /// folder if it does not exist. Throws UserError as check_not_held does; WriteError.
  void take(const std::string& session);

  /// Throws WriteError if the lock is held but its file is gone or replaced: nothing keeps other
  /// runs out of the folder any more.
  void check() const;

  /// Removes the file, for a process that ends without destroying this object. Any thread.
  void remove_file() const noexcept;

  bool held() const { return fd_ >= 0; }
  /// Whether the file system supports locks. If it does not, take() takes nothing.
  bool supported() const { return supported_; }

 private:
  bool try_once();
  bool open_file();
  void write_holder(const std::string& session) const;
  std::filesystem::path file() const;

  std::filesystem::path folder_;
  int fd_ = -1;
  bool made_folder_ = false;
  bool supported_ = true;
};

}  // namespace decent
