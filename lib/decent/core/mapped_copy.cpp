#include "decent/core/mapped_copy.h"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

namespace decent {
namespace {

// Where this thread goes on if its copy fails; null while it copies nothing.
thread_local sigjmp_buf* volatile on_bus_error = nullptr;

struct sigaction handler_before {};

// The failed instruction runs again, under the previous handler.
void pass_on() { ::sigaction(SIGBUS, &handler_before, nullptr); }

extern "C" void handle_bus_error(int) {
  if (on_bus_error != nullptr) siglongjmp(*on_bus_error, 1);
  pass_on();
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = handle_bus_error;
    action.sa_flags = SA_NODEFER;  // the handler is left by a jump, which does not restore the mask
    ::sigaction(SIGBUS, &action, &handler_before);
  });
}

}  // namespace

bool copy_mapped(void* to, const void* from, std::size_t bytes) noexcept {
  install_handler();
  sigjmp_buf here;
  if (sigsetjmp(here, /*savemask=*/0) != 0) {
    on_bus_error = nullptr;
    return false;
  }
  on_bus_error = &here;
  std::memcpy(to, from, bytes);
  on_bus_error = nullptr;
  return true;
}

}  // namespace decent
