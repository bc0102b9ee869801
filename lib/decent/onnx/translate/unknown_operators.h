#pragma once
// Operators that the import does not know, and advice on files that need them.

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "decent/onnx/classify/classify.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

class UnknownOperators {
 public:
  /// `reads_integer_matrix`: whether an input of the node is a constant of integers with two or
  /// more dimensions.
  void add(const Node& node, bool reads_integer_matrix);

  bool empty() const { return nodes_.empty(); }
  /// "ai.onnx.ml.ZipMap", in alphabetical order.
  std::vector<std::string> names() const;

  /// Why `model` cannot be imported: two lines for each kind of operator that belongs to one tool
  /// or to other domains, however many there are. `holds_layers` says whether the model also has
  /// layers of a neural network.
  std::vector<std::string> paragraphs(const Model& model, bool holds_layers) const;
  /// A line for each of the other operators.
  std::vector<std::string> standard_lines(std::int64_t opset) const;

  /// Whether paragraphs() says what kind of file it is, so that the reasons for single nodes add
  /// nothing.
  bool tell_the_kind() const;

 private:
  enum class Kind { standard, quantised, onnxruntime, classical, custom };
  struct Key {
    Kind kind = Kind::standard;
    std::string domain;
    std::string op_type;
    auto operator<=>(const Key&) const = default;
  };
  static Kind kind_of(const Node& node);
  bool has(Kind kind) const;
  std::vector<std::string> operators_of(Kind kind) const;
  std::string quantised_text() const;
  std::string onnxruntime_text() const;
  std::string classical_text(bool holds_layers) const;
  void add_custom(const Model& model, std::vector<std::string>& paragraphs) const;

  std::map<Key, std::vector<std::string>> nodes_;  // their names
  bool has_integer_weights_ = false;
};

/// What stands in the way of an import.
struct Obstacles {
  UnknownOperators operators;
  std::vector<std::string> nodes;  // nodes of known operators that cannot be translated, and why

  bool empty() const { return operators.empty() && nodes.empty(); }
  /// "operator Foo, operator Bar and 2 more".
  std::string in_brief() const;
};

/// Names of the graph's outputs: required ones that cannot be computed because of obstacles, and
/// ones that can be computed and depend on weights.
struct OutputsInDoubt {
  std::vector<std::string> impossible;
  std::vector<std::string> possible;
};

/// Why the model cannot be imported and what to do about it, such as choosing another output if one
/// is possible.
std::string refusal_text(const Model& model, const Classification& classification,
                         const Obstacles& obstacles, const OutputsInDoubt& outputs);

}  // namespace decent::onnx
