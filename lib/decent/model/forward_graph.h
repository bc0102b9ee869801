#pragma once
// All that a module's forward may run, as one graph to look at; internal to this room.

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <memory>

namespace decent {

/// A copy of forward's graph in which every call stands as what it calls, at any depth: methods of
/// the module and of its submodules, and functions. What torch.jit.fork starts stands before the
/// node that does so, which stays; so does all that a call through an interface may come to where
/// it cannot be told which object it is of. Not to be run. Constants are the module's own tensors.
/// Without forward, an empty graph.
std::shared_ptr<torch::jit::Graph> forward_graph(const torch::jit::Module& module);

/// Every node, those of branches and loops included, inner ones first.
void visit_nodes(const torch::jit::Graph& graph,
                 const std::function<void(const torch::jit::Node*)>& visit);

}  // namespace decent
