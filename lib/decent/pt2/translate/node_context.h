#pragma once
// The interface of an operator's rule: it reads the node here, and writes the node's translation.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/translate/argument_text.h"
#include "decent/pt2/translate/method_writer.h"

namespace decent::pt2 {

class NodeContext {
 public:
  /// `graph` is the graph that contains the node.
  NodeContext(const Node& node, const Graph& graph, MethodWriter& method, ValueScope& scope)
      : node_(node),
        target_(parse_target(node.target)),
        graph_(graph),
        method_(method),
        scope_(scope) {}

  const Node& node() const { return node_; }
  const Target& target() const { return target_; }

  // ---- what the node is given

  std::size_t inputs() const { return node_.inputs.size(); }
  /// TorchScript for an input. Throws Unsupported if there is no such input.
  std::string input(std::size_t place) const;
  std::string input(std::string_view name) const;
  /// An input that must be a constant of this type.
  template <typename Constant>
  const Constant& constant(std::size_t place) const {
    if (place < inputs()) {
      if (const auto* found = std::get_if<Constant>(&node_.inputs[place].value)) return *found;
    }
    throw Unsupported("has an input " + std::to_string(place) +
                      " that is not as PyTorch writes it");
  }
  /// "torch.conv2d(x, weight, stride=[2, 2])": a call with all inputs. A switch of the node that
  /// follows the trainer's mode depends on it in the call. An operator that writes into a buffer
  /// and returns something else gets a copy of the buffer in evaluation.
  std::string call(const std::string& function) const;

  // ---- what it becomes

  /// Adds a line to the method.
  void line(const std::string& text) { method_.line(text); }
  void open(const std::string& text) { method_.open(text); }
  void close() { method_.close(); }
  /// Assigns the results from the expression: "a, b = torch.max(x, 1)".
  void assign(const std::string& expression);
  /// The results, one by one, are already in the source.
  void results_are(const std::vector<std::string>& texts);
  /// A name for an intermediate variable.
  std::string fresh_name(const std::string& name) { return method_.fresh_name(name); }
  /// Adds the lines of a graph that the node runs on these inputs, and returns its outputs.
  std::vector<std::string> run(const Graph& region, const std::vector<std::string>& inputs);
  /// TorchScript for the operands that the node passes to its graphs.
  std::vector<std::string> operands() const;
  /// Names of the results, for lines that assign them.
  std::vector<std::string> declare_results();

  // ---- train and eval

  const ModeSwitch* mode_switch() const { return method_.modes().following(node_); }
  /// "self.layer1.bn.training": the mode of a module, or of the whole model if none is given.
  std::string training(const std::string& module = "") const;
  /// The node's writes into buffers that belong to training only, or nullptr.
  const NodeWrites* training_writes() const { return method_.training_writes(node_); }
  /// Whether a later node writes into the memory of a result.
  bool is_written_later() const { return method_.is_written_later(node_); }

  const OperatorSchema* schema() const { return method_.schemas().find(target_); }
  const OperatorSchemas& schemas() const { return method_.schemas(); }

 private:
  std::string argument(const NamedArgument& input) const;
  const std::string& keyword(const std::string& name) const;
  std::string copied_in_evaluation(std::string text, std::size_t place) const;
  bool loses_bool() const;

  const Node& node_;
  const Target target_;
  const Graph& graph_;
  MethodWriter& method_;
  ValueScope& scope_;
};

}  // namespace decent::pt2
