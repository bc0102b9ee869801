#pragma once
// How forward uses its weights, as its forward_graph() shows it; internal to this room.

#include <torch/csrc/jit/ir/ir.h>

#include <string>

namespace decent {

enum class WeightUse {
  linear,       // [out, in], as torch.nn.Linear
  transposed,   // [in, out], as Conv1D of transformers
  embedding,    // [number, size]
  convolution,  // [out, in, ..], without groups
  other,        // or it cannot be told
};

/// Whether forward looks up the parameter of that name as an embedding with a sparse gradient.
bool has_sparse_gradient(const torch::jit::Graph& forward, const std::string& name);

/// How forward uses the parameter of that name. `other` if it is used in several ways.
WeightUse use_of(const torch::jit::Graph& forward, const std::string& name);

}  // namespace decent
