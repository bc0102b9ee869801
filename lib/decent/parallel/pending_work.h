#pragma once
// Operations with peers: several as one, and the end of one recorded at the time when it happens.

#include <memory>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/trace.h"

namespace decent {

/// Done when all of `works` are.
Pending all_of(std::vector<std::shared_ptr<PendingWork>> works);

/// Starts a thread that waits for `work` and then ends `span`, because a Communicator's exchange
/// does not know that it is complete before somebody waits for it. Every wait() of the result
/// throws what that thread caught. On a GPU, wait() also blocks the thread, and not only the
/// stream. The destructor of the result waits, too.
Pending watched(Pending work, TraceSpan span);

}  // namespace decent
