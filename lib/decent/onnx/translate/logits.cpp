#include "decent/onnx/translate/logits.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "decent/onnx/graph/uses.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/translate/graph_translator.h"

namespace decent::onnx {
namespace {

// Operators that only move or reshape probabilities: applied to logits they give the logits of the
// output.
constexpr std::array<std::string_view, 8> kViews = {"Cast",  "Flatten", "Identity",  "Reshape",
                                                    "Slice", "Squeeze", "Transpose", "Unsqueeze"};
// Operators that models apply to final probabilities. A MatMul, in contrast, would be a layer.
constexpr std::array<std::string_view, 14> kChanges = {"Abs",    "Add",   "Clip", "Concat", "Div",
                                                       "Gather", "Max",   "Min",  "Mul",    "Pow",
                                                       "Round",  "Split", "Sub",  "Sum"};

bool is_one_of(std::span<const std::string_view> names, const Node& node) {
  const bool is_standard = node.domain.empty();
  return is_standard && std::find(names.begin(), names.end(), node.op_type) != names.end();
}

bool is_activation(const Node& node) {
  if (node.domain == kPatternDomain) return node.op_type == "SafeSoftmax";
  return node.domain.empty() && (node.op_type == "Softmax" || node.op_type == "Sigmoid");
}

/// The way back from an output, node by node.
class WayBack {
 public:
  WayBack(Graph& graph, const std::string& output) : graph_(graph), uses_(graph) {
    std::string name = output;
    while (const Node* node = producer(name)) {
      way_.push_back(node);
      if (is_activation(*node) && !node->inputs.empty()) return;
      const auto input = node->inputs.empty()         ? std::nullopt
                         : is_one_of(kViews, *node)   ? std::optional(node->inputs.front())
                         : is_one_of(kChanges, *node) ? only_varying_input(*node)
                                                      : std::nullopt;
      if (!input) break;
      name = *input;
    }
    way_.clear();
  }

  std::optional<ProbabilityEnd> end() {
    if (way_.empty()) return std::nullopt;
    const Node activation = *way_.back();
    ProbabilityEnd result{activation.op_type == "Sigmoid", describe(activation), "", ""};
    for (const Node* node : way_) {
      if (is_one_of(kChanges, *node)) result.changed_by = node->op_type;
    }
    const std::string& before = activation.inputs.front();
    if (result.changed_by.empty() && producer(before) != nullptr)
      result.logits = with_views(before, activation.outputs.front());
    return result;
  }

 private:
  const Node* producer(const std::string& name) const {
    if (name.empty()) return nullptr;  // an omitted input
    const auto found =
        std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
          return std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end();
        });
    return found == graph_.nodes.end() ? nullptr : &*found;
  }

  std::optional<std::string> only_varying_input(const Node& node) const {
    std::optional<std::string> name;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!uses_.input_varies(node, i)) continue;
      if (name) return std::nullopt;
      name = node.inputs[i];
    }
    return name;
  }

  // Adds the views between the activation and the output once more, for `logits`.
  std::string with_views(std::string logits, const std::string& probabilities) {
    std::vector<Node> views;
    std::string from = probabilities;
    for (auto node = way_.rbegin() + 1; node != way_.rend(); ++node) {
      if ((*node)->op_type == "Identity") {
        from = (*node)->outputs.front();
        continue;
      }
      Node copy = **node;
      copy.name = describe(copy) + " of logits";
      std::replace(copy.inputs.begin(), copy.inputs.end(), from, logits);
      from = copy.outputs.front();
      logits = unused(from + "_logits");
      copy.outputs = {logits};
      views.push_back(std::move(copy));
    }
    if (!views.empty()) insert_after(*way_.front(), std::move(views));
    return logits;
  }

  std::string unused(std::string name) const {
    while (producer(name) != nullptr) name += "_";
    return name;
  }

  void insert_after(const Node& node, std::vector<Node> nodes) {
    const auto place = graph_.nodes.begin() + (&node - graph_.nodes.data()) + 1;
    graph_.nodes.insert(place, std::make_move_iterator(nodes.begin()),
                        std::make_move_iterator(nodes.end()));
  }

  Graph& graph_;
  Uses uses_;
  std::vector<const Node*> way_;  // from the output to the activation; empty if there is none
};

}  // namespace

std::optional<ProbabilityEnd> find_probabilities(Graph& graph, const std::string& output) {
  return WayBack(graph, output).end();
}

}  // namespace decent::onnx
