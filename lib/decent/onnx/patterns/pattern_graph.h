#pragma once
// A graph in which patterns are searched.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/format/ir.h"
#include "decent/onnx/graph/constant_values.h"

namespace decent::onnx {

class PatternGraph {
 public:
  PatternGraph(const Graph& graph, std::int64_t opset);
  PatternGraph(const PatternGraph&) = delete;
  PatternGraph& operator=(const PatternGraph&) = delete;

  /// The node that makes a value, or nullptr.
  const Node* producer(const std::string& name) const;
  /// The same if it is a standard operator of that name.
  const Node* producer(const std::string& name, std::string_view op_type) const;
  /// How often a value is read, including nested graphs and the graph's outputs.
  std::size_t readers(const std::string& name) const;
  const Tensor* initializer(const std::string& name) const;

  const SmallConstant* constant(const std::string& name) const { return constants_.find(name); }
  /// A constant of one element that adds no dimensions when it is broadcast.
  std::optional<double> scalar(const std::string& name) const;
  /// Whether the name is such a constant with `value`, to the precision of its type.
  bool is_scalar(const std::string& name, double value) const;
  /// Whether all elements of a constant are `value`.
  bool is_filled(const std::string& name, double value) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& name) const;
  /// The axes of a reduction, from an attribute or input 1.
  std::optional<std::vector<std::int64_t>> axes(const Node& node) const;
  /// The number of dimensions, if the file or the earlier nodes tell it.
  std::optional<std::int64_t> rank(const std::string& name) const;

  std::int64_t opset(const Node& node) const { return node.opset != 0 ? node.opset : opset_; }

 private:
  void count_readers(const Graph& graph);
  std::optional<std::int64_t> rank(const std::string& name, std::size_t depth) const;
  std::optional<std::int64_t> infer_rank(const Node& node, std::size_t depth) const;

  std::int64_t opset_;
  std::map<std::string, const Node*, std::less<>> producers_;
  std::map<std::string, std::size_t, std::less<>> readers_;
  std::map<std::string, const Tensor*, std::less<>> initializers_;
  std::map<std::string, std::int64_t, std::less<>> ranks_;
  mutable std::map<std::string, std::optional<std::int64_t>> inferred_;
  ConstantValues constants_;
};

/// An attribute, or `otherwise`.
std::int64_t int_attribute(const Node& node, std::string_view name, std::int64_t otherwise);
float float_attribute(const Node& node, std::string_view name, float otherwise);

/// The input of a node with two that is not `name`, or nullptr.
const std::string* other_input(const Node& node, const std::string& name);

/// The other input of a node with the scalar `value` as one input, or nullptr.
const std::string* input_beside(const PatternGraph& graph, const Node& node, double value);

/// A product written as nested multiplications (by constants also divisions).
struct Product {
  double scale = 1;                  // constants
  std::vector<std::string> factors;  // the rest, in order
  std::vector<const Node*> inner;    // the nodes below the root
};

/// Takes apart nested Mul and Div nodes whose results nothing else reads.
Product product_of(const PatternGraph& graph, const Node& root);

/// Whether two numbers are the same float.
bool is_near(double value, double expected);

}  // namespace decent::onnx
