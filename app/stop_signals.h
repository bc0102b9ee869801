#pragma once
// SIGTERM, SIGINT, SIGUSR1 and, unless it is ignored (nohup), SIGHUP ask a run to stop.

#include "decent/comm/control/control.h"

namespace decent {

/// From now on these signals are requests to `control`, which must live until the process ends.
void stop_on_signals(Control& control);

}  // namespace decent
