#pragma once
// Communicators of workers that share memory (mail.h).

#include <memory>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/comm/shared_memory/mail.h"

namespace decent {

/// A group of all workers of `mail`, for tensors on the CPU. `ranks`, in the run, are for messages.
/// With a sum, each member adds up its share of the elements, in the order of members.
std::shared_ptr<Communicator> share_memory(std::shared_ptr<Mail> mail, std::vector<int> ranks);

}  // namespace decent
