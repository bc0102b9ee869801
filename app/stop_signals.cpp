#include "stop_signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>

namespace decent {
namespace {

// A signal handler has no other way to know its object.
std::atomic<Control*> receiver = nullptr;

void handle(int signal) {
  const int saved = errno;
  if (Control* control = receiver.load()) control->request_stop(signal);
  errno = saved;
}

}  // namespace

void stop_on_signals(Control& control) {
  receiver = &control;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // reads and writes under way go on as if nothing had happened
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

}  // namespace decent
