#pragma once
// One run at a time in an output folder: an advisory lock (flock) on the file .lock in it. The
// kernel frees it with the process, however that ends; docs/checkpoints.md says what network file
// systems make of it.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace decent {

/// Who holds a lock, as written in its file.
struct LockHolder {
  std::string session;  // of the run's processes, the same for all that were started together
  std::string host;
  std::string process;  // its number
  std::string since;    // "2026-05-04 13:37:00 UTC"
};

/// "the run of process 123 on 'node7', since 2026-05-04 13:37:00 UTC"
std::string text_of(const LockHolder& holder);

/// Who holds the lock of the folder; nothing where nobody does, or where there is no such folder.
/// A holder that has not written who it is yet has empty fields. Writes nothing.
std::optional<LockHolder> find_holder(const std::filesystem::path& folder);

/// Throws UserError saying who holds the folder where somebody still does after a second: others
/// that only look hold it for a moment, and processes that were killed take one to end.
void check_not_held(const std::filesystem::path& folder);

/// Not thread-safe.
class OutputLock {
 public:
  explicit OutputLock(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Removes the file and frees the lock, and removes the folder where take() made it and nothing
  /// else came into it.
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  /// Takes the lock for the processes of `session`, one of which may hold it already; makes the
  /// folder where it is not there. Throws UserError as check_not_held does; WriteError.
  void take(const std::string& session);

  /// Removes the file, which the end of the process would leave behind. For a process that ends
  /// without destroying this object; any thread.
  void remove_file() const noexcept;

  bool held() const { return fd_ >= 0; }
  /// Whether the file system knows locks. Where it does not, take() takes nothing.
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
