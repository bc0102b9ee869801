#pragma once
// The interface for translating one node: inputs and attributes in, TorchScript out.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/script_text.h"
#include "decent/onnx/format/ir.h"
#include "decent/onnx/translate/expression.h"
#include "decent/onnx/translate/value.h"

namespace decent::onnx {

class GraphTranslator;
class ModuleBuilder;

class NodeContext {
 public:
  NodeContext(GraphTranslator& graph, const Node& node);

  const Node& node() const { return node_; }
  /// Version of the operators that the node is written in.
  std::int64_t opset() const;

  // Inputs. Asking for a missing one throws Unsupported, so optional ones need has() first.

  std::size_t inputs() const { return node_.inputs.size(); }
  bool has(std::size_t input) const;
  const Value& input(std::size_t input) const;
  ElementType type(std::size_t input) const { return this->input(input).type; }
  std::optional<std::int64_t> rank(std::size_t input) const { return this->input(input).rank; }
  /// The elements of an integer tensor of rank 0 or 1, if they are known one by one.
  std::optional<std::vector<Integer>> integers(std::size_t input) const;
  /// The same if all are known now.
  std::optional<std::vector<std::int64_t>> known_integers(std::size_t input) const;
  /// The value of a constant with one element.
  std::optional<double> known_scalar(std::size_t input) const;

  // Expressions of inputs, as text that never needs parentheses.

  /// The tensor.
  std::string tensor(std::size_t input);
  /// A List[int]: "[x.size(0), -1]", or a variable that holds the tensor's elements.
  std::string int_list(std::size_t input);
  /// An int, float or bool from a tensor of one element.
  std::string int_scalar(std::size_t input);
  std::string float_scalar(std::size_t input);
  std::string bool_scalar(std::size_t input);

  // Attributes.

  std::int64_t int_or(std::string_view name, std::int64_t otherwise) const;
  double float_or(std::string_view name, double otherwise) const;
  std::string string_or(std::string_view name, const std::string& otherwise) const;
  std::optional<std::vector<std::int64_t>> ints(std::string_view name) const;
  std::optional<std::vector<float>> floats(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return node_.find(name) != nullptr; }
  const Tensor* tensor_attribute(std::string_view name) const;
  const Graph& graph_attribute(std::string_view name) const;
  /// An attribute that holds a TensorProto.DataType; half types become float32 if the model
  /// computes in it.
  ElementType type_attribute(std::string_view name, ElementType otherwise) const;
  /// The type in which the model computes with elements of `type`.
  ElementType as_computed(ElementType type) const;
  /// Axes from an attribute, or from input `input` in newer versions; std::nullopt if neither is
  /// given. Throws Unsupported if they are only known when the model runs.
  std::optional<std::vector<std::int64_t>> axes(std::string_view attribute,
                                                std::size_t input) const;

  // Source.

  /// Adds a line.
  void line(const std::string& text);
  /// Adds "a, b = expression".
  void assign(std::span<const std::string> names, const Expression& expression);
  void assign(const std::string& name, const Expression& expression);
  /// Adds "name = expression" and returns the name, made from `hint`.
  std::string variable(std::string_view hint, const Expression& expression);
  /// A name that nothing else has.
  std::string fresh_name(std::string_view hint);
  /// Lines up to the matching close() stand one step further in.
  void open(const std::string& text);
  void close();
  /// The device of the model's tensors, for operators that make tensors.
  std::string device();
  /// "self._name": a method of helpers.h.
  std::string helper(std::string_view name);
  /// The text for a tensor that is the same in every run.
  std::string constant(std::shared_ptr<const Tensor> tensor, std::string_view hint);
  /// "torch.float32". Throws Unsupported for strings.
  std::string dtype(ElementType type) const;
  /// Adds a line for the report.
  void note(std::string_view text);

  // Outputs.

  bool wants(std::size_t output) const;
  /// Whether a node reads the output, or the model returns it.
  bool is_read(std::size_t output) const;
  /// Sets output `output` to `expression`.
  void set(std::size_t output, const Expression& expression, ElementType type,
           std::optional<std::int64_t> rank = std::nullopt);
  /// The variable of an output that lines of source assign; "_" if nothing reads it.
  std::string declare(std::size_t output, ElementType type,
                      std::optional<std::int64_t> rank = std::nullopt);
  void set_integers(std::size_t output, std::vector<Integer> integers, std::int64_t rank,
                    ElementType type = ElementType::int64);
  /// Sets the whole shape of an output that was set, if it is the same in every run.
  void set_dims(std::size_t output, std::vector<std::int64_t> dims);
  void set_constant(std::size_t output, std::shared_ptr<const Tensor> tensor);
  /// `rank` is the rank of all elements.
  void set_sequence(std::size_t output, const Expression& expression, ElementType type,
                    std::optional<std::int64_t> rank = std::nullopt);
  /// Makes the output another value under a new name.
  void set_value(std::size_t output, Value value);

  /// Translates a graph attribute (If, Loop) at this place of the source. `inputs` are the values
  /// of its inputs. Returns the values of its outputs.
  std::vector<Value> translate_graph(const Graph& graph, std::vector<Value> inputs);
  /// TorchScript for the tensor of any value.
  std::string text_of(const Value& value);

 private:
  GraphTranslator& graph_;
  ModuleBuilder& module_;
  const Node& node_;
};

}  // namespace decent::onnx
