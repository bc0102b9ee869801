#pragma once
// Values that the arguments and results of nodes name.

#include <functional>
#include <string>
#include <vector>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The name of the value that an argument is; nullptr where it is a constant or several values.
const std::string* value_name(const Argument& argument);

/// One argument for each element of a list of tensors or of symbolic numbers; itself otherwise.
std::vector<Argument> elements_of(const Argument& argument);

/// All results of a node, those of a list one by one.
std::vector<Argument> results_of(const Node& node);

/// Graphs that an operator of higher order runs, such as the branches of cond, in order.
std::vector<const Graph*> regions_of(const Node& node);

/// What such an operator passes to its graphs as their inputs: what stands behind the last of them.
std::vector<Argument> operands_of(const Node& node);

/// The graph and all that are inside of it, at any depth.
void for_each_graph(const Graph& graph, const std::function<void(const Graph& graph)>& visit);

/// "layer1.0.bn1": the module whose forward the node is from, by what the exporter noted; "" where
/// it noted none.
std::string module_of(const Node& node);

/// "node 'conv2d' (torch.ops.aten.conv2d.default), called at line 20 of model.py": how messages
/// name a node.
std::string description_of(const Node& node);

}  // namespace decent::pt2
