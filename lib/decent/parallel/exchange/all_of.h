#pragma once
// Several operations with peers as one.

#include <memory>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// Done when all of `works` are.
Pending all_of(std::vector<std::shared_ptr<PendingWork>> works);

}  // namespace decent
