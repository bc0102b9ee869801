#pragma once
// What a node says: the operator that it calls, the values that its arguments and results name, and
// where it comes from.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The operator that a node calls. "torch.ops.aten.add_.Tensor" is add_, overload Tensor, of the
/// library aten; "_operator.mul" is mul of _operator, without an overload.
struct Target {
  std::string library;
  std::string name;
  std::string overload;  // empty for "default"

  /// "aten.add_", the key for finding rules.
  std::string operator_name() const { return library + "." + name; }
  bool is_aten() const { return library == "aten"; }
};

Target parse_target(std::string_view text);

/// The name of an argument's value; nullptr if it is a constant or several values.
const std::string* value_name(const Argument& argument);

/// One argument for each element of a list of tensors or of symbolic numbers; otherwise the
/// argument itself.
std::vector<Argument> elements_of(const Argument& argument);

/// All results of a node; the results in a list one by one.
std::vector<Argument> results_of(const Node& node);

/// The graphs that an operator of higher order runs, such as the branches of cond, in order.
std::vector<const Graph*> regions_of(const Node& node);

/// The arguments that such an operator passes to its graphs as their inputs: those after the last
/// graph.
std::vector<Argument> operands_of(const Node& node);

/// Visits the graph and all graphs inside of it, at any depth.
void for_each_graph(const Graph& graph, const std::function<void(const Graph& graph)>& visit);

/// "layer1.0.bn1": the module whose forward contains the node, as the exporter noted it; "" if it
/// noted none.
std::string module_of(const Node& node);

/// The name of a node in messages: "node 'conv2d' (torch.ops.aten.conv2d.default), called at line
/// 20 of model.py".
std::string description_of(const Node& node);

}  // namespace decent::pt2
