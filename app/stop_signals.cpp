#include "stop_signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>

namespace decent {
namespace {

// A signal handler has no other access to its object.
std::atomic<Control*> receiver = nullptr;

void handle(int signal) {
  const int saved = errno;
  if (Control* control = receiver.load()) control->request_stop(signal);
  errno = saved;
}

// Whether the signal is ignored: by nohup, or by the supervisor, which handles terminal signals.
bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void stop_on_signals(Control& control) {
  receiver = &control;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // reads and writes under way continue
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
  if (!is_ignored(SIGHUP)) ::sigaction(SIGHUP, &action, nullptr);
}

}  // namespace decent
