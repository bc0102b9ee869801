#pragma once
// The walk over a graph's nodes that translation.h promises; internal to this folder.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decent/onnx/format/ir.h"
#include "decent/onnx/translate/constant_folder.h"
#include "decent/onnx/translate/module_builder.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/translation.h"
#include "decent/onnx/translate/unknown_operators.h"

namespace decent::onnx {

/// The arguments and the result of forward().
class ForwardMethod {
 public:
  ForwardMethod(const Model& model, ModuleBuilder& module) : model_(model), module_(module) {}

  /// Defines the graph's inputs as arguments. Throws UserError if one is no tensor.
  void declare_inputs();
  /// The names of the graph's inputs and of their arguments.
  const std::vector<std::pair<std::string, std::string>>& arguments() const { return arguments_; }

  /// Writes the return of the graph's outputs, which ends the method, and returns the source of the
  /// whole module.
  std::string finish();

 private:
  Value value_of(const ValueInfo& input) const;
  const Value& output_value(const ValueInfo& output) const;
  std::string signature() const;
  std::string return_type() const;
  std::string return_line() const;
  std::string device() const;

  const Model& model_;
  ModuleBuilder& module_;
  std::vector<std::pair<std::string, std::string>> arguments_;
};

class GraphTranslator {
 public:
  GraphTranslator(const Model& model, const Classification& classification,
                  const TranslationOptions& options);
  Translation run();

  // The state that the translation of a node uses; see node_context.h.

  ModuleBuilder& module() { return module_; }
  /// The version of the operators for nodes that do not state it.
  std::int64_t opset() const { return model_.opset(); }
  std::vector<Value> translate_graph(const Graph& graph, std::vector<Value> inputs);
  void note(const std::string& text);

 private:
  void translate_nodes(const Graph& graph);
  void give_logits_after(const Node& node);
  bool reads_integer_matrix(const Node& node) const;
  void translate_node(const Node& node);
  void translate_known(const Node& node, const Operator& known);
  void check_outputs(const Node& node);
  bool give_own_parameter(const Node& node);
  void record_step(const Node& node, const Operator& known);
  void give_up_on_outputs(const Node& node);
  void find_impossible_outputs();
  [[noreturn]] void refuse() const;

  const Model& model_;
  const Classification& classification_;
  const TranslationOptions& options_;
  ModuleBuilder module_;
  ForwardMethod forward_;
  ConstantFolder folder_;
  Translation result_;
  Obstacles obstacles_;
  std::set<std::string> given_up_;  // values that cannot be computed
};

/// How messages name a node: "node 'conv1' (Conv)".
std::string describe(const Node& node);

}  // namespace decent::onnx
