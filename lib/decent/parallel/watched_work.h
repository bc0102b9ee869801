#pragma once
// The end of an operation with peers, as it happens.

#include "decent/comm/communicator.h"
#include "decent/core/trace.h"

namespace decent {

/// `work`, with a thread that waits for it from now on and ends `span` when it is done, not when
/// somebody asks: a Communicator's exchange does not know before it is waited for. What that thread
/// is thrown comes out of every wait() of the result, which on a GPU blocks the thread, too, and
/// not only the stream. Dropping the result waits, too.
Pending watched(Pending work, TraceSpan span);

}  // namespace decent
