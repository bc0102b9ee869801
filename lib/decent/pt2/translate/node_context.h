#pragma once
// What the rule of an operator sees of a node, and how it says what the node becomes.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "decent/pt2/analyse/arguments.h"
#include "decent/pt2/analyse/target.h"
#include "decent/pt2/translate/argument_text.h"
#include "decent/pt2/translate/method_writer.h"

namespace decent::pt2 {

class NodeContext {
 public:
  /// `graph`: the one that the node stands in.
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
  /// TorchScript of an input. Throws Unsupported where there is none.
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
  /// "torch.conv2d(x, weight, stride=[2, 2])": a call with all inputs, which the trainer's mode
  /// takes part in where the node has a switch that follows it. An operator that writes into a
  /// buffer and gives something else is given a copy of the buffer in evaluation.
  std::string call(const std::string& function) const;

  // ---- what it becomes

  /// Lines of the method.
  void line(const std::string& text) { method_.line(text); }
  void open(const std::string& text) { method_.open(text); }
  void close() { method_.close(); }
  /// The results are those of the expression: "a, b = torch.max(x, 1)".
  void assign(const std::string& expression);
  /// The results, one by one, stand in the source already.
  void results_are(const std::vector<std::string>& texts);
  /// A variable for something on the way.
  std::string fresh_name(const std::string& name) { return method_.fresh_name(name); }
  /// Lines of a graph that the node runs, on these inputs. Gives its outputs.
  std::vector<std::string> run(const Graph& region, const std::vector<std::string>& inputs);
  /// TorchScript of what the node passes to its graphs.
  std::vector<std::string> operands() const;
  /// Names of the results, for lines that assign them.
  std::vector<std::string> declare_results();

  // ---- train and eval

  const ModeSwitch* mode_switch() const { return method_.modes().following(node_); }
  /// "self.layer1.bn.training": the mode of a module; of the whole without one.
  std::string training(const std::string& module = "") const;
  /// The writes into buffers that the node does, and that belong to training alone; or nullptr.
  const NodeWrites* training_writes() const { return method_.training_writes(node_); }

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
