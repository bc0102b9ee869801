#include "decent/supervisor/worker_side.h"

#include <sys/prctl.h>
#include <sys/socket.h>

namespace decent {

void watches_supervisor(const Launch& launch) {
  if (launch.supervisor >= 0) ::prctl(PR_SET_PDEATHSIG, 0);
}

void saves_on_signals(const Launch& launch) {
  if (launch.supervisor < 0) return;
  const char any = '!';
  // A supervisor that has ended is noticed elsewhere.
  [[maybe_unused]] const auto sent = ::send(launch.supervisor, &any, 1, MSG_NOSIGNAL);
}

}  // namespace decent
