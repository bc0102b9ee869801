#pragma once
// One TCP connection between every two workers, beside those that carry weights. The kernel closes
// a process's connections when it dies, however it dies: all others see at once who went first.

#include <string>
#include <vector>

#include "decent/comm/socket.h"

namespace decent {

/// Connects worker `rank` with all others: to those of lower rank at `endpoints`, and on `listener`
/// from those of higher rank. `token`, the same for all workers of a run, keeps strangers out.
/// Returns the connections by rank, the own one closed. Collective. Throws PeerLost naming the
/// worker, and its address, that could not be connected before the deadline.
std::vector<Socket> connect_mesh(int rank, const std::vector<Endpoint>& endpoints,
                                 const Socket& listener, const std::string& token,
                                 Deadline deadline);

}  // namespace decent
