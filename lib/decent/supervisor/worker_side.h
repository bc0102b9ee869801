#pragma once
// What a worker does for the supervisor that started it. These functions do nothing in workers
// without one.

#include "decent/comm/launch.h"

namespace decent {

/// This worker watches the supervisor's end itself from now on (launcher_watch.h). Until then the
/// kernel ends it together with the supervisor.
void watches_supervisor(const Launch& launch);

/// From now on a signal makes this worker save and stop. Until then there is nothing to save, and
/// the supervisor ends its workers at once.
void saves_on_signals(const Launch& launch);

}  // namespace decent
