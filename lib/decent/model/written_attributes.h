#pragma once
// Finds a module's tensors into which forward writes; internal to this room.

#include <torch/csrc/jit/ir/ir.h>

#include <set>
#include <string>

namespace decent {

struct WrittenAttributes {
  std::set<std::string> paths;  // "layer1.weight"; buffers among them
  bool others = false;          // forward writes into tensors that cannot be told: they may be any
};

/// The attributes into which operators of a forward_graph() write in place, directly or through
/// views. An operator's schema says whether it writes.
WrittenAttributes find_written_attributes(const torch::jit::Graph& forward);

}  // namespace decent
