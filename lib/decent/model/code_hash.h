#pragma once
// A hash of what a model computes, because all workers must train the same function.

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace decent {

/// SHA-1 (40 hex digits) over the code of forward and of everything that it calls, and over the
/// module's attributes that are no tensors. Weights do not count.
std::string code_hash(const torch::jit::Module& module);

}  // namespace decent
