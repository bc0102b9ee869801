#include "decent/onnx/report/gradient_paths.h"

#include <algorithm>
#include <set>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/onnx/graph/uses.h"

namespace decent::onnx {
namespace {

/// A trainable value: its name in the graph and in the module.
struct Weight {
  std::string value;
  std::string name;
};

void add_weights(const Graph& graph, const Classification& classification,
                 std::vector<Weight>& weights) {
  for (const Tensor& tensor : graph.initializers) {
    const auto found = classification.initializers.find(&tensor);
    if (found != classification.initializers.end() && found->second.role == Role::trainable)
      weights.push_back({tensor.name, found->second.name});
  }
  for (const Node& node : graph.nodes) {
    const auto found = classification.own.find(&node);
    if (found != classification.own.end() && found->second.role == Role::trainable)
      weights.push_back({node.outputs.front(), found->second.name});
    for (const Graph* nested : nested_graphs(node)) add_weights(*nested, classification, weights);
  }
}

std::vector<std::string> names_of(const std::vector<ValueInfo>& infos) {
  std::vector<std::string> names;
  for (const ValueInfo& info : infos) names.push_back(info.name);
  return names;
}

std::vector<std::string> names_of(const NameList& names) { return {names.begin(), names.end()}; }

// Adds steps for the values that go into a branch or a loop's body, and for those that come out.
void add_nested_steps(const Graph& graph, std::vector<GradientStep>& steps) {
  for (const Node& node : graph.nodes) {
    for (const Graph* nested : nested_graphs(node)) {
      steps.push_back({"", node.op_type, names_of(node.inputs), names_of(nested->inputs), true});
      steps.push_back({"", node.op_type, names_of(nested->outputs), names_of(node.outputs), true});
      add_nested_steps(*nested, steps);
    }
  }
}

class Search {
 public:
  explicit Search(std::vector<GradientStep> steps) : steps_(std::move(steps)) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const std::string& name : steps_[i].outputs) producers_[name].push_back(i);
      for (const std::string& name : steps_[i].inputs) readers_[name].push_back(i);
    }
  }

  /// The values from which there is a path to `outputs`: one with a gradient, or any.
  std::set<std::string> reaching(const std::vector<std::string>& outputs,
                                 bool with_gradient) const {
    std::set<std::string> reached(outputs.begin(), outputs.end());
    std::vector<std::string> open = outputs;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      const auto producers = producers_.find(name);
      if (producers == producers_.end()) continue;
      for (const std::size_t step : producers->second) {
        if (with_gradient && !steps_[step].flows) continue;
        for (const std::string& input : steps_[step].inputs) {
          if (!input.empty() && reached.insert(input).second) open.push_back(input);
        }
      }
    }
    return reached;
  }

  /// The nearest step without a gradient between a value and the values that reach the output.
  std::string first_cut(const std::string& value, const std::set<std::string>& reaching) const {
    std::set<std::string> seen = {value};
    std::vector<std::string> open = {value};
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto readers = readers_.find(open[i]);
      if (readers == readers_.end()) continue;
      for (const std::size_t index : readers->second) {
        const GradientStep& step = steps_[index];
        for (const std::string& output : step.outputs) {
          if (reaching.count(output) == 0) continue;
          if (!step.flows) return step.node;
          if (seen.insert(output).second) open.push_back(output);
        }
      }
    }
    return "";
  }

 private:
  std::vector<GradientStep> steps_;
  std::map<std::string, std::vector<std::size_t>> producers_;
  std::map<std::string, std::vector<std::size_t>> readers_;
};

}  // namespace

GradientPaths find_gradient_paths(const Model& model, const Classification& classification,
                                  const Translation& translation,
                                  std::span<const std::string> outputs) {
  std::vector<GradientStep> steps = translation.steps;
  add_nested_steps(model.graph, steps);
  const Search search(std::move(steps));
  std::vector<std::string> ends(outputs.begin(), outputs.end());
  if (ends.empty()) ends = names_of(model.graph.outputs);
  const std::set<std::string> with_gradient = search.reaching(ends, true);
  const std::set<std::string> any = search.reaching(ends, false);
  std::vector<Weight> weights;
  add_weights(model.graph, classification, weights);
  GradientPaths paths;
  for (const Weight& weight : weights) {
    if (with_gradient.count(weight.value) != 0) continue;
    if (any.count(weight.value) != 0) {
      paths.cut.push_back({weight.name, search.first_cut(weight.value, any)});
    } else {
      paths.unconnected.push_back(weight.name);
    }
  }
  return paths;
}

void check_gradient_paths(const GradientPaths& paths, std::span<const std::string> frozen) {
  constexpr std::size_t kMaxNamed = 3;
  std::vector<const CutWeight*> cut;
  for (const CutWeight& weight : paths.cut) {
    const bool is_frozen = std::any_of(frozen.begin(), frozen.end(), [&](const std::string& glob) {
      return glob_matches(glob, weight.name);
    });
    if (!is_frozen) cut.push_back(&weight);
  }
  if (cut.empty()) return;
  std::string message = "no gradient reaches " + std::to_string(cut.size()) +
                        (cut.size() == 1 ? " weight:" : " weights:");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(cut.size(), kMaxNamed); ++i) {
    message += "\n'" + cut[i]->name + "' is behind " + cut[i]->node + ", which has none";
    names.push_back(cut[i]->name);
  }
  if (cut.size() > kMaxNamed) names.emplace_back("..");
  throw UserError(message + "\nmodel.freeze: [" + join(names) +
                  "] leaves such weights as they are; model.output chooses another output");
}

}  // namespace decent::onnx
