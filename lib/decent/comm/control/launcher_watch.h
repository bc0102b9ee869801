#pragma once
// Notices when the launcher ends before its workers do.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "decent/comm/control/stop_requests.h"
#include "decent/comm/launch.h"

namespace decent {

/// The launcher's process on this machine that started this worker: the nearest ancestor whose
/// environment has another value of `mark`, or none. `mark` is a variable that the launcher sets
/// for all processes that it starts, including scripts in between (TORCHELASTIC_RUN_ID). That
/// ancestor is torchrun, mpirun or its daemon, or Slurm's slurmstepd. nullopt if this process does
/// not have the variable, or if the ancestor is gone already.
std::optional<pid_t> find_launcher(const std::string& mark,
                                   const std::filesystem::path& proc = "/proc");

/// Names the process that the launcher started and that is or became this worker: this process, or
/// the script around it, which may start several programs in turn. `mark`: see find_launcher. No
/// other process has the same name, on any machine. "" if it is not known.
std::string started_process(const std::string& mark, const std::filesystem::path& proc = "/proc");

/// The process group of `process`, a folder of /proc. nullopt if there is no such process.
std::optional<pid_t> process_group(const std::filesystem::path& process);

/// Watches `launch.supervisor`, or the launcher's process by pidfd_open, which kernels before Linux
/// 5.3 do not have. The descriptor is closed if neither is known.
LauncherWatch watch_launcher(const Launch& launch);

}  // namespace decent
