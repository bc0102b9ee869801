#pragma once
// Notices when the process that started a worker ends before the worker does.

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "decent/comm/control/stop_requests.h"
#include "decent/comm/launch.h"

namespace decent {

/// The torchrun process that started this worker: the nearest ancestor without the variable
/// TORCHELASTIC_RUN_ID, which torchrun sets for all processes that it starts, including scripts in
/// between. nullopt if this process does not have the variable, or if the ancestor is gone already.
std::optional<pid_t> find_torchrun(const std::filesystem::path& proc = "/proc");

/// Watches `launch.supervisor` or torchrun (by pidfd_open, so not on kernels before Linux 5.3). The
/// descriptor is closed where neither of them started this worker.
LauncherWatch watch_launcher(const Launch& launch);

}  // namespace decent
