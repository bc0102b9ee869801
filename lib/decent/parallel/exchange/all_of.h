#pragma once
// Several operations with peers as one.

#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// Done when all of `works` are.
Pending all_of(std::vector<Pending> works);

}  // namespace decent
