#pragma once
// Which of a module's tensors forward writes into; internal to this room.

#include <torch/csrc/jit/ir/ir.h>

#include <set>
#include <string>

namespace decent {

struct WrittenAttributes {
  std::set<std::string> paths;  // "layer1.weight"; buffers among them
  bool others = false;          // forward writes into what cannot be told: it may be any of them
};

/// What operators of a forward_graph() write into in place, directly or through views. Whether an
/// operator writes is what its schema says.
WrittenAttributes find_written_attributes(const torch::jit::Graph& forward);

}  // namespace decent
