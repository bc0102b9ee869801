#pragma once
// One TCP connection between every two workers, separate from those that carry weights. The kernel
// closes the connections of a process however it dies, so all others see at once who died first.

#include <string>
#include <vector>

#include "decent/comm/socket.h"

namespace decent {

/// Connects worker `rank` with all others: to workers of lower rank at `endpoints`, and on
/// `listener` from workers of higher rank. `token` is the same for all workers of a run;
/// connections without it are dropped. Returns the connections by rank, the own one closed.
/// Collective. Throws PeerLost naming the worker, and its address, that could not be connected
/// before the deadline.
std::vector<Socket> connect_mesh(int rank, const std::vector<Endpoint>& endpoints,
                                 const Socket& listener, const std::string& token,
                                 Deadline deadline);

}  // namespace decent
