#pragma once
// Notices when torchrun ends before its workers do.

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "decent/comm/socket.h"

namespace decent {

/// The torchrun process that started this worker: the nearest ancestor without the variable
/// TORCHELASTIC_RUN_ID, which torchrun sets for all processes that it starts, including scripts in
/// between. nullopt if this process does not have the variable, or if the ancestor is gone already.
std::optional<pid_t> find_torchrun(const std::filesystem::path& proc = "/proc");

/// A descriptor that becomes readable when torchrun ends (pidfd_open). It is closed if torchrun did
/// not start this worker, and on kernels before Linux 5.3.
Socket watch_torchrun();

}  // namespace decent
