#pragma once
// Every optimizer of this library. An entry here is all that make_update(), the recipe, the CPU's
// loops and the CUDA kernels need to know of one.

#include "decent/optim/rules/accum_adam.h"
#include "decent/optim/rules/adam.h"
#include "decent/optim/rules/lion.h"
#include "decent/optim/rules/rmsprop.h"
#include "decent/optim/rules/sgd.h"

namespace decent::rules {

template <class... Rules>
struct TypeList {
  static_assert(((Rules::kRoundings <= 16) && ...), "see rule.h");
};

using All = TypeList<Adam, Sgd, AccumAdam, Lion, RmsProp>;

}  // namespace decent::rules
