#pragma once
// The walk over a graph's nodes that translation.h promises; internal to this folder.

#include <deque>
#include <set>

#include "decent/onnx/graph/names.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/source_lines.h"
#include "decent/onnx/translate/translation.h"
#include "decent/onnx/translate/unknown_operators.h"

namespace decent::onnx {

class GraphTranslator {
 public:
  GraphTranslator(const Model& model, const Classification& classification,
                  const TranslationOptions& options);
  Translation run();

 private:
  friend class NodeContext;
  using Scope = std::map<std::string, Value, std::less<>>;

  // Values.
  const Value* find(std::string_view name) const;  // nullptr where there is none
  const Value& output_value(const ValueInfo& output) const;
  void define(const std::string& name, Value value);
  bool is_read(std::string_view name);
  void add_initializers(const Graph& graph);
  Value value_of(const Tensor& initializer);
  Value value_of(const Tensor& tensor, const Classified& classified);
  Value parameter(const Tensor& tensor, const Classified& classified);
  std::shared_ptr<const Tensor> as_computed(std::shared_ptr<const Tensor> tensor) const;
  std::shared_ptr<const Tensor> as_computed(const Tensor& tensor) const;
  ElementType as_computed(ElementType type) const;
  std::string text_of(const Value& value);
  std::string constant_text(std::shared_ptr<const Tensor> tensor, std::string_view hint);

  // Nodes.
  void translate_nodes(const Graph& graph);
  void give_logits_after(const Node& node);
  bool reads_integer_matrix(const Node& node) const;
  void translate_node(const Node& node);
  void translate_known(const Node& node, const Operator& known);
  void check_outputs(const Node& node);
  bool give_own_parameter(const Node& node);
  bool fold(const Node& node, const Operator& known);
  bool can_fold(const Node& node, const Operator& known) const;
  std::vector<std::string> outputs_to_compute(const Node& node) const;
  std::vector<Tensor> evaluate(const Node& node, const Operator& known);
  void record_step(const Node& node, const Operator& known);
  void give_up_on_outputs(const Node& node);
  std::vector<Value> translate_graph(const Graph& graph, std::vector<Value> inputs);

  // The whole.
  void declare_inputs();
  std::string signature() const;
  std::string return_line();
  std::string return_type() const;
  ModuleSource finish_module();
  void find_impossible_outputs();
  [[noreturn]] void refuse() const;

  const Model& model_;
  const Classification& classification_;
  const TranslationOptions& options_;
  Translation result_;
  std::deque<Scope> scopes_;
  std::set<std::string, std::less<>> read_names_;  // by is_read(), when it is first asked
  SourceLines lines_;
  Identifiers identifiers_;
  Identifiers constant_names_;
  std::map<const Tensor*, std::string> constant_texts_;
  std::set<std::string> helpers_;
  std::set<std::string> used_parameters_;
  bool needs_device_ = false;
  bool evaluating_ = false;
  Obstacles obstacles_;
  std::set<std::string> given_up_;  // values that cannot be had
};

/// How messages name a node: "node 'conv1' (Conv)".
std::string describe(const Node& node);

}  // namespace decent::onnx
