#pragma once
// The list of all optimizers of this library. make_update(), the CPU's loops, the CUDA kernels and
// the program's list of optimizers are generated from it.

#include "decent/optim/rules/accum_adam.h"
#include "decent/optim/rules/adafactor.h"
#include "decent/optim/rules/adagrad.h"
#include "decent/optim/rules/adam.h"
#include "decent/optim/rules/lion.h"
#include "decent/optim/rules/muon.h"
#include "decent/optim/rules/nadam.h"
#include "decent/optim/rules/radam.h"
#include "decent/optim/rules/rmsprop.h"
#include "decent/optim/rules/sgd.h"

namespace decent::rules {

template <class... Rules>
struct TypeList {
  static_assert(((Rules::kRoundings <= 16) && ...), "see rule.h");
};

using All = TypeList<Adam, Sgd, AccumAdam, Lion, RmsProp, Adagrad, NAdam, RAdam, Muon, Adafactor>;

}  // namespace decent::rules
