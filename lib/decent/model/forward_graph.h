#pragma once
// Everything that a module's forward may run, as one graph to look at, and its hash; internal to
// this room.

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace decent {

/// A copy of forward's graph in which every call is replaced by the body of what it calls, at any
/// depth: methods of the module and of its submodules, and functions. Two kinds of calls stay, with
/// the bodies inserted before them: torch.jit.fork, and calls through an interface whose object
/// cannot be told, which get all possible bodies. The graph must not be run. Constants are the
/// module's own tensors. Without forward, the graph is empty.
std::shared_ptr<torch::jit::Graph> forward_graph(const torch::jit::Module& module);

/// Visits every node, including nodes of branches and loops, inner ones first.
void visit_nodes(const torch::jit::Graph& graph,
                 const std::function<void(const torch::jit::Node*)>& visit);

/// The path from the module to the attribute that a GetAttr node of its forward_graph() reads:
/// "layer1.weight". Nothing if that attribute's owner is not reached by attributes alone.
std::optional<std::string> attribute_path(const torch::jit::Node* node,
                                          const torch::jit::Graph& forward);

/// A hash of what a model computes, because all workers must train the same function: SHA-1 (40 hex
/// digits) over the code of forward and of everything that it calls, and over the
/// module's attributes that are no tensors. Weights do not count.
std::string code_hash(const torch::jit::Module& module);

}  // namespace decent
