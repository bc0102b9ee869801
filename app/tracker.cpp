#include "tracker.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "decent/core/environment.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "decent-track";

// Where the Python environment has its commands, seen from the folder of this program: in a wheel
// (bin/ of the package in lib/python3.11/site-packages/ of the environment), and in a clone.
constexpr const char* kCommandFolders[] = {"../../../../../bin", "../../.venv/bin"};

bool can_run(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0; }

// What posix_spawnp shall start: a bare name is looked for on the PATH.
std::string command_to_start() {
  const std::string folders = environment_variable("PATH").value_or("");
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    if (can_run(fs::path(folders.substr(begin, end - begin)) / kCommand)) return kCommand;
    begin = end + 1;
  }
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  for (const char* folder : kCommandFolders) {
    const fs::path beside = (program.parent_path() / folder / kCommand).lexically_normal();
    if (!failed && can_run(beside)) return beside;
  }
  return kCommand;
}

// Its own session, so that a Ctrl-C does not end it before it has sent the last lines. None of this
// process's files but stderr, and none of its signals.
class Surroundings {
 public:
  Surroundings() {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&files_);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
  }
  ~Surroundings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

  /// Returns an errno, or 0.
  int spawn(const std::string& command, std::vector<std::string> arguments, pid_t& process) const {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    return ::posix_spawnp(&process, command.c_str(), &files_, &attributes_, pointers.data(),
                          ::environ);
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t files_{};
};

// "ended with exit code 2"
std::string ending(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Tracker::Tracker(std::string service, const fs::path& folder, Log& log)
    : service_(std::move(service)), log_(log) {
  const int error = Surroundings().spawn(
      command_to_start(),
      {kCommand, folder.string(), "--to", service_, "--beside", std::to_string(::getpid())},
      process_);
  if (error == 0) return;
  process_ = 0;
  log_.warn("log.track: " + service_ + " gets no figures, as " + kCommand + " cannot be started: " +
            std::strerror(error) + ". It comes with pip install 'decent-train[track]'; " +
            kCommand + " " + folder.string() + " --to " + service_ + " sends them later");
}

void Tracker::wait(std::chrono::seconds most) {
  if (process_ == 0) return;
  const auto end = std::chrono::steady_clock::now() + most;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(process_, &status, WNOHANG)) == 0 &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  process_ = 0;
  if (ended == 0) {
    log_.info("log.track: " + std::string(kCommand) + " still sends figures to " + service_);
  } else if (ended > 0 && status != 0) {
    log_.warn("log.track: " + std::string(kCommand) + " --to " + service_ + " " + ending(status));
  }
}

}  // namespace decent
