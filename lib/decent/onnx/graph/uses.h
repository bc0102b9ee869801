#pragma once
// Who reads the values of a graph.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "decent/onnx/format/ir.h"
#include "decent/onnx/graph/loop_states.h"

namespace decent::onnx {

/// Numbers a value of one graph walk: names alone do not tell values of nested graphs apart.
using ValueId = std::size_t;

/// A place where a value is read: an input of a node. What a branch of an If gives is not read
/// there but handed on, to an output of the If. What a loop carries through all rounds as it came
/// is one value, read where the body reads it.
struct Use {
  const Node* node = nullptr;  // nullptr: an output of the whole graph
  std::size_t input = 0;
};

class Uses {
 public:
  explicit Uses(const Graph& graph);

  /// In the order of the graph, nested graphs where their node stands.
  const std::vector<const Tensor*>& initializers() const { return initializers_; }
  const std::vector<const Node*>& nodes() const { return nodes_; }

  ValueId of(const Tensor& initializer) const { return tensors_.at(&initializer); }
  /// Outputs of a node, in order; those left out too.
  const std::vector<ValueId>& outputs(const Node& node) const { return outputs_.at(&node); }
  /// The initializer that an input of a node is, or nullptr.
  const Tensor* initializer(const Node& node, std::size_t input) const;

  const std::vector<Use>& readers(ValueId value) const { return values_[value].readers; }
  /// Values that are this one or a part of it: outputs of an If, one of whose branches gives it,
  /// and the elements of it that go into the rounds of a Scan.
  const std::vector<ValueId>& handed_to(ValueId value) const { return values_[value].handed_to; }
  /// Whether the value differs from run to run: it comes from an input, or from chance.
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

/// Graphs among a node's attributes: the branches of an If, the body of a Loop.
std::vector<const Graph*> nested_graphs(const Node& node);

/// A node's inputs, and what the graphs in its attributes read and give (names of their own among
/// it).
std::vector<std::string> names_read(const Node& node);

}  // namespace decent::onnx
