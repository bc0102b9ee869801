#pragma once
// Who reads the values of a graph, and removing what nobody needs.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decent/onnx/format/ir.h"
#include "decent/onnx/graph/loop_states.h"

namespace decent::onnx {

/// The number of a value in one walk over the graph, because names alone do not distinguish values
/// of nested graphs.
using ValueId = std::size_t;

/// A place where a value is read: an input of a node. The result of a branch of an If is not read
/// there but passed on, to an output of the If. A state that a loop passes through all rounds
/// unchanged is one value, which is read where the body reads it.
struct Use {
  const Node* node = nullptr;  // nullptr: an output of the whole graph
  std::size_t input = 0;
};

class Uses {
 public:
  explicit Uses(const Graph& graph);

  /// In the order of the graph, with nested graphs at the place of their node.
  const std::vector<const Tensor*>& initializers() const { return initializers_; }
  const std::vector<const Node*>& nodes() const { return nodes_; }

  ValueId of(const Tensor& initializer) const { return tensors_.at(&initializer); }
  /// The outputs of a node, in order, including omitted ones.
  const std::vector<ValueId>& outputs(const Node& node) const { return outputs_.at(&node); }
  /// The initializer that a node reads as this input, or nullptr.
  const Tensor* initializer(const Node& node, std::size_t input) const;

  const std::vector<Use>& readers(ValueId value) const { return values_[value].readers; }
  /// Values that are this one or a part of it: outputs of an If with a branch that returns it, and
  /// its elements in the rounds of a Scan.
  const std::vector<ValueId>& handed_to(ValueId value) const { return values_[value].handed_to; }
  /// Whether the value differs from run to run, because it depends on an input or on random
  /// numbers.
  bool varies(ValueId value) const { return values_[value].varies; }
  bool input_varies(const Node& node, std::size_t input) const;

 private:
  struct Known {
    std::vector<Use> readers;
    std::vector<ValueId> handed_to;
    bool varies = false;
  };
  using Scope = std::map<std::string, ValueId, std::less<>>;

  ValueId add(const std::string& name, bool varies);
  void bind(const std::string& name, ValueId value);
  const ValueId* find(const std::string& name) const;
  void visit_graph(const Graph& graph);
  void visit_node(const Node& node);
  void visit_inputs(const Node& node, const std::vector<LoopState>& unchanged);
  void visit_nested(const Graph& graph, const Node& owner, const std::vector<LoopState>& unchanged);
  void bind_inputs(const Graph& body, const Node& owner, const std::vector<LoopState>& unchanged);
  void give(ValueId value, std::size_t output, const Node& owner);

  std::vector<Known> values_;
  std::vector<Scope> scopes_;
  std::vector<const Tensor*> initializers_;
  std::vector<const Node*> nodes_;
  std::map<const Tensor*, ValueId> tensors_;
  std::map<ValueId, const Tensor*> tensor_of_;
  std::map<const Node*, std::vector<ValueId>> outputs_;
  std::map<const Node*, std::vector<ValueId>> inputs_;
};

/// The graphs among a node's attributes: the branches of an If, the body of a Loop.
std::vector<const Graph*> nested_graphs(const Node& node);

/// The names of a node's inputs, and the names that the graphs in its attributes read and return
/// (including their own).
std::vector<std::string> names_read(const Node& node);

/// Removes the outputs that are not in `names` from a graph, and the nodes that only they need.
void keep_outputs(Graph& graph, const std::set<std::string>& names);

}  // namespace decent::onnx
