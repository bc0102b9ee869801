#pragma once
// For workers of several machines: joins what carries tensors inside a machine with what carries
// them between machines.

#include <memory>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// A communicator like `all`, except that two members of `local` exchange through `local`, and
/// groups of such members are subgroups of `local`. `local_members`: their numbers in `all`. For
/// workers that share memory, or whose GPUs NCCL connects, while `all` goes over the network.
std::shared_ptr<Communicator> by_place(std::shared_ptr<Communicator> all,
                                       std::shared_ptr<Communicator> local,
                                       std::vector<int> local_members);

}  // namespace decent
