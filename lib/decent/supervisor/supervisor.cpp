#include "decent/supervisor/supervisor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <optional>

#include "decent/comm/control/control_types.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// `timeout` and other programs send a signal both to a process and to its group: that is one
// request.
constexpr auto kSameRequest = 200ms;
constexpr auto kLookAgain = 500ms;
constexpr std::chrono::duration<double> kPatienceAtStart = 2s;
constexpr auto kNothingSaved = "before there was anything to save";

// SIGHUP stays ignored if the program runs under nohup.
bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// Signals that ask for an end. They kill a worker that has no handler yet, which also has nothing
// to save yet.
bool asks_to_stop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGUSR1 || signal == SIGHUP;
}

// Only wait() takes signals, so that they interrupt nothing else.
class Signals {
 public:
  Signals() {
    // If the parent process left SIGCHLD ignored, the kernel would not keep how a worker ended.
    std::signal(SIGCHLD, SIG_DFL);
    ::sigemptyset(&set_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&set_, signal);
    if (!is_ignored(SIGHUP)) ::sigaddset(&set_, SIGHUP);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~Signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Returns the next signal; nullopt for SIGCHLD, and after a while.
  std::optional<siginfo_t> wait() const {
    const timespec most{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kLookAgain).count()};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&set_, &info, &most);
    return signal > 0 && signal != SIGCHLD ? std::optional(info) : std::nullopt;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options)
      : options_(options), workers_(options.workers) {}

  int run() {
    for (int restarts = 0;; ++restarts) {
      const std::optional<WorkerEnd> failure = run_once(restarts);
      if (killed_by_) return 128 + *killed_by_;
      if (!failure) return static_cast<int>(ExitCode::done);
      if (asked_by_ || restarts == options_.max_restarts || !may_go_well(*failure))
        return code_of(*failure);
      leave_one_out();
      options_.say("starting " + who() + " again, " + std::to_string(restarts + 1) + " of " +
                   std::to_string(options_.max_restarts) + " times");
    }
  }

 private:
  // Returns the first failure, after all workers have ended.
  std::optional<WorkerEnd> run_once(int restarts) {
    WorkerGroup group(options_.command(restarts), workers_);
    std::optional<WorkerEnd> first;
    Clock::time_point failed;
    while (group.running() > 0) {
      if (const auto signal = signals_.wait()) take(*signal, group);
      for (const WorkerEnd& end : group.take_ended()) {
        if (!asked_by_ && asks_to_stop(end.signal))
          kill(end.signal, group, kNothingSaved, " to worker " + std::to_string(end.rank));
        if (!end.failed() || first) continue;
        first = end;
        failed = Clock::now();
        if (end.signal != 0 && !killed_by_) say_signal(end);
      }
      if (first && Clock::now() > failed + patience(group)) group.signal(SIGKILL);
    }
    deaths_at_start_ = first && !group.has_stepped() ? deaths_at_start_ + 1 : 0;
    return first;
  }

  // Where a worker dies twice at the same point, it would do so for ever. Which one does not
  // matter: the system chooses it where memory runs out, and the core that it runs on.
  void leave_one_out() {
    if (deaths_at_start_ < 2 || options_.min_workers == 0 || workers_ <= options_.min_workers)
      return;
    --workers_;
    deaths_at_start_ = 0;
  }

  std::string who() const {
    if (workers_ == options_.workers) return "all workers";
    return std::to_string(workers_) + " of " + counted(options_.workers, "worker");
  }

  // As long as not all workers have begun to train, the others have nothing to save and may wait
  // for the failed one.
  std::chrono::duration<double> patience(WorkerGroup& group) const {
    return group.saves_on_signals() ? options_.patience
                                    : std::min(options_.patience, kPatienceAtStart);
  }

  void take(const siginfo_t& info, WorkerGroup& group) {
    const int signal = info.si_signo;
    const bool from_terminal = info.si_code == SI_KERNEL;
    if (!asked_by_) {
      asked_by_ = signal;
      asked_ = Clock::now();
      if (group.saves_on_signals()) return group.signal(signal == SIGHUP ? SIGTERM : signal);
      return kill(signal, group, kNothingSaved);
    }
    if (from_terminal || Clock::now() > asked_ + kSameRequest)
      kill(signal, group, "at once by a second signal");
  }

  void kill(int signal, WorkerGroup& group, const std::string& how, const std::string& to = "") {
    if (killed_by_) return;
    killed_by_ = signal;
    group.signal(SIGKILL);
    options_.say("ended " + how + " (" + signal_name(signal) + to + ")");
  }

  void say_signal(const WorkerEnd& end) const {
    options_.say("worker " + std::to_string(end.rank) + " (process " + std::to_string(end.process) +
                 ") was ended by " + signal_name(end.signal) +
                 (end.signal == SIGKILL ? ", as the system does where memory runs out" : ""));
  }

  static int code_of(const WorkerEnd& end) {
    return end.signal != 0 ? static_cast<int>(ExitCode::peer_lost) : end.exit_code;
  }

  static bool may_go_well(const WorkerEnd& end) {
    const int code = code_of(end);
    return code == static_cast<int>(ExitCode::peer_lost) || code == static_cast<int>(ExitCode::bug);
  }

  const SupervisorOptions& options_;
  const Signals signals_;
  int workers_;                   // of the next start
  int deaths_at_start_ = 0;       // of a worker before its first step, in a row
  std::optional<int> asked_by_;   // the first signal
  std::optional<int> killed_by_;  // the signal that killed the workers
  Clock::time_point asked_;
};

}  // namespace

int supervise(const SupervisorOptions& options) { return Supervisor(options).run(); }

}  // namespace decent
