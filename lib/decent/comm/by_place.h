#pragma once
// Workers of several machines: what carries tensors inside a machine need not be what carries them
// between machines.

#include <memory>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// `all`, but members exchange in `local` if both are in it, and groups of such members are groups
/// of `local`. `local_members` are local's members by their numbers in `all`. For workers that
/// share memory, or whose GPUs NCCL connects, while `all` goes over the network.
std::shared_ptr<Communicator> by_place(std::shared_ptr<Communicator> all,
                                       std::shared_ptr<Communicator> local,
                                       std::vector<int> local_members);

}  // namespace decent
