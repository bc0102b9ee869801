#pragma once
// Limits the time that connecting may take, for backends that have no limit of their own.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "decent/comm/communicator.h"

namespace decent {

/// Calls `too_late` in a thread of its own if `work` takes longer than `most`. `work` is not cut
/// off, so `too_late` should end the process. Passes on what `work` throws.
void watch(std::chrono::duration<double> most, const std::function<void()>& too_late,
           const std::function<void()>& work);

/// Runs a step that makes connections; see watch().
using Connecting = std::function<void(const std::function<void()>& step)>;

/// Returns the group that `connect` makes. `connect`, and every later call of the group that makes
/// connections (subgroup(), connect_pairs()), runs within `connecting`.
std::shared_ptr<Communicator> watch_connections(
    const std::function<std::shared_ptr<Communicator>()>& connect, Connecting connecting);

}  // namespace decent
