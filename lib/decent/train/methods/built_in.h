#pragma once
// The rows of methods.cpp, each in a file of its own.

#include "decent/train/methods.h"

namespace decent {

ParallelMethod gossip_method();
ParallelMethod all_reduce_method();
ParallelMethod alone_method();

}  // namespace decent
