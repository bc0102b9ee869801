#pragma once
// Runs a test's work in a process of its own: if a process decides something only once (which
// library is loaded), if several are needed (a GPU per rank), or if the test's own must be spared.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace decent::testing {

/// A child of this process that runs `work` and exits. Its result is the text that `work` returns,
/// or "error: " and the message of the exception.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<std::string()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no fork");
    if (pid_ == 0) {
      ::close(ends[0]);
      run(work, ends[1]);
    }
    ::close(ends[1]);
    out_ = ends[0];
  }

  /// Waits for the child to end.
  std::string result() {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(out_, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(out_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (!WIFEXITED(status)) return "error: killed by signal " + std::to_string(WTERMSIG(status));
    return text;
  }

 private:
  [[noreturn]] static void run(const std::function<std::string()>& work, int out) {
    std::string text;
    try {
      text = work();
    } catch (const std::exception& error) {
      text = std::string("error: ") + error.what();
    }
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t n = ::write(out, rest.data(), rest.size());
      if (n <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
    ::_exit(0);  // without the parent's exit handlers
  }

  pid_t pid_ = 0;
  int out_ = -1;
};

inline std::string in_child(const std::function<std::string()>& work) {
  return ChildProcess(work).result();
}

}  // namespace decent::testing
