#include "decent/runfolder/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <system_error>
#include <thread>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/host.h"
#include "decent/runfolder/run_folder.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLockPatience = 1s;
constexpr auto kLockRetryPause = 20ms;

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

LockHolder read_holder(const std::filesystem::path& file) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return {};
  std::ifstream stream(file);
  LockHolder holder;
  for (std::string* field : {&holder.session, &holder.host, &holder.process, &holder.since}) {
    std::getline(stream, *field);
  }
  return holder;
}

// Whether `error` says that the file system has no locks, not that this lock is held.
bool means_unsupported(int error) {
  return error == ENOLCK || error == ENOTSUP || error == EOPNOTSUPP || error == ENOSYS ||
         error == EINVAL;
}

[[noreturn]] void refuse(const std::filesystem::path& folder, const LockHolder& holder) {
  throw UserError("output folder '" + folder.string() + "' is in use by " + text_of(holder) +
                  ".\nWait until that run has ended or stop it, or choose another folder with "
                  "--set output=DIR.");
}

}  // namespace

std::string text_of(const LockHolder& holder) {
  if (holder.process.empty()) return "another run";
  return "the run of process " + holder.process + " on '" + holder.host + "', since " +
         holder.since;
}

std::optional<LockHolder> find_holder(const std::filesystem::path& folder) {
  const int fd = ::open(RunFolder(folder).lock().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  // Shared, so that processes that only look do not see one another.
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  std::optional<LockHolder> holder;
  if (held) holder = read_holder(RunFolder(folder).lock());
  ::close(fd);
  return holder;
}

void check_not_held(const std::filesystem::path& folder) {
  const auto deadline = Clock::now() + kLockPatience;
  for (;;) {
    const auto holder = find_holder(folder);
    if (!holder) return;
    if (Clock::now() >= deadline) refuse(folder, *holder);
    std::this_thread::sleep_for(kLockRetryPause);
  }
}

std::filesystem::path OutputLock::file() const { return RunFolder(folder_).lock(); }

// As long as the lock is held, the file cannot be another run's.
void OutputLock::remove_file() const noexcept {
  if (fd_ >= 0 && stands_at(fd_, file())) ::unlink(file().c_str());
}

OutputLock::~OutputLock() {
  if (fd_ < 0) return;
  remove_file();
  ::close(fd_);
  if (made_folder_) ::rmdir(folder_.c_str());  // fails if the folder is not empty
}

void OutputLock::take(const std::string& session) {
  const auto deadline = Clock::now() + kLockPatience;
  while (!try_once()) {
    if (!supported_) return;
    const auto holder = find_holder(folder_);
    if (holder && holder->session == session) return;
    if (Clock::now() >= deadline) refuse(folder_, holder.value_or(LockHolder{}));
    std::this_thread::sleep_for(kLockRetryPause);
  }
  write_holder(session);
}

// Returns false if another holder that made the folder removed it before the file was created.
bool OutputLock::open_file() {
  std::error_code failed;
  const bool there = std::filesystem::exists(folder_, failed);
  create_folders(folder_);
  made_folder_ = made_folder_ || !there;
  check_is_no_pipe(file());
  fd_ = ::open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ >= 0) return true;
  if (errno == ENOENT) return false;
  throw WriteError("cannot write '" + file().string() + "': " + std::strerror(errno));
}

// A holder removes the file before it frees the lock, so the opened file may no longer be the one
// that others see.
bool OutputLock::try_once() {
  if (!open_file()) return false;
  const bool locked = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  if (!locked) supported_ = !means_unsupported(errno);
  if (locked && stands_at(fd_, file())) return true;
  ::close(fd_);
  fd_ = -1;
  return false;
}

void OutputLock::check() const {
  if (fd_ < 0 || stands_at(fd_, file())) return;
  throw WriteError("'" + file().string() +
                   "', the lock of this run, is gone or another's: was the output folder moved or "
                   "deleted? A run whose folder others may take does not go on");
}

// The content is only for messages, so failures are ignored: a full disk will show at files that
// matter.
void OutputLock::write_holder(const std::string& session) const {
  const std::string text =
      session + "\n" + host_name() + "\n" + std::to_string(::getpid()) + "\n" + now_text() + "\n";
  if (::ftruncate(fd_, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd_, text.data(), text.size(), 0);
}

}  // namespace decent
