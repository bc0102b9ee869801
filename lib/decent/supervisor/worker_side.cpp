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
  // If the supervisor has ended, another part of the program notices.
  [[maybe_unused]] const auto sent = ::send(launch.supervisor, &any, 1, MSG_NOSIGNAL);
}

}  // namespace decent
