#pragma once
// torchrun as a process that can end before its workers do.

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "decent/comm/socket.h"

namespace decent {

/// The process that started this worker by way of torchrun: the nearest ancestor that does not have
/// the variable TORCHELASTIC_RUN_ID, which torchrun gives to all that it starts, scripts in between
/// included. Nothing where this process does not have it, or where the ancestor is gone already.
std::optional<pid_t> find_torchrun(const std::filesystem::path& proc = "/proc");

/// A descriptor that becomes readable when torchrun ends (pidfd_open); closed where no torchrun
/// started this worker, and on kernels before Linux 5.3.
Socket watch_torchrun();

}  // namespace decent
