// Layer norm and RMS norm, which exporters write out in parts before opset 17 and 23. PyTorch's
// kernels compute the gradient in one pass, with the statistics of the forward pass.

#include <algorithm>

#include "decent/onnx/patterns/pattern_matchers.h"

namespace decent::onnx {
namespace {

struct Normalized {
  std::string x;
  std::int64_t axes = 0;  // how many, the last ones
  double epsilon = 0;
  std::vector<const Node*> inner;
};

// Over how many axes a ReduceMean takes the mean, if they are the last ones and are kept with size
// 1.
std::optional<std::int64_t> mean_of_last_axes(const PatternGraph& graph, const Node& mean) {
  auto axes = graph.axes(mean);
  if (!axes || axes->empty() || int_attribute(mean, "keepdims", 1) != 1) return std::nullopt;
  const auto rank = graph.rank(mean.inputs.front());
  for (std::int64_t& axis : *axes) {
    if (axis >= 0 && !rank) return std::nullopt;
    if (axis >= 0) axis -= *rank;
  }
  std::sort(axes->begin(), axes->end());
  const auto count = static_cast<std::int64_t>(axes->size());
  for (std::int64_t i = 0; i < count; ++i) {
    if ((*axes)[static_cast<std::size_t>(i)] != i - count) return std::nullopt;
  }
  return count;
}

// Matches sqrt(mean(square(of)) + epsilon) in `name`.
std::optional<Normalized> match_deviation(const PatternGraph& graph, const std::string& name,
                                          const std::string& of) {
  const Node* root = graph.producer(name, "Sqrt");
  const Node* sum = root == nullptr ? nullptr : graph.producer(root->inputs.front(), "Add");
  if (sum == nullptr || sum->inputs.size() != 2) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const auto epsilon = graph.scalar(sum->inputs[1 - place]);
    const Node* mean = graph.producer(sum->inputs[place], "ReduceMean");
    const Node* square = mean == nullptr ? nullptr : graph.producer(mean->inputs.front());
    if (square == nullptr || !epsilon || !(*epsilon >= 0)) continue;
    const bool squares =
        (is(*square, "Pow", 2) && square->inputs[0] == of &&
         graph.is_scalar(square->inputs[1], 2)) ||
        (is(*square, "Mul", 2) && square->inputs[0] == of && square->inputs[1] == of);
    const auto axes = mean_of_last_axes(graph, *mean);
    if (squares && axes) return Normalized{of, *axes, *epsilon, {root, sum, mean, square}};
  }
  return std::nullopt;
}

// Matches `name` as `of` divided by its deviation: a Div, or a Mul with a Reciprocal.
std::optional<Normalized> match_division(const PatternGraph& graph, const std::string& name) {
  const Node* node = graph.producer(name);
  if (node == nullptr) return std::nullopt;
  std::optional<Normalized> found;
  if (is(*node, "Div", 2)) found = match_deviation(graph, node->inputs[1], node->inputs[0]);
  if (is(*node, "Mul", 2)) {
    for (const std::size_t place : {0, 1}) {
      const Node* inverse = graph.producer(node->inputs[place]);
      if (inverse == nullptr || found) continue;
      const bool is_division = is(*inverse, "Div", 2) && graph.is_scalar(inverse->inputs[0], 1);
      if (!is_division && !is(*inverse, "Reciprocal", 1)) continue;
      found = match_deviation(graph, inverse->inputs.back(), node->inputs[1 - place]);
      if (found) found->inner.push_back(inverse);
    }
  }
  if (found) found->inner.push_back(node);
  return found;
}

// Matches a division in which the dividend is x minus its mean.
std::optional<Normalized> match_standardized(const PatternGraph& graph, const std::string& name) {
  std::optional<Normalized> found = match_division(graph, name);
  if (!found) return std::nullopt;
  const Node* centered = graph.producer(found->x, "Sub");
  if (centered == nullptr || centered->inputs.size() != 2) return std::nullopt;
  const Node* mean = graph.producer(centered->inputs[1], "ReduceMean");
  if (mean == nullptr || mean->inputs.front() != centered->inputs[0]) return std::nullopt;
  if (mean_of_last_axes(graph, *mean) != found->axes) return std::nullopt;
  found->inner.insert(found->inner.end(), {centered, mean});
  found->x = centered->inputs[0];
  return found;
}

// A weight must have one element for each normalized element.
bool has_rank(const PatternGraph& graph, const std::string& name, std::int64_t rank) {
  return graph.rank(name) == rank;
}

using Matching = std::optional<Normalized> (*)(const PatternGraph&, const std::string&);

struct Scaled {
  Normalized normalized;
  std::string weight;
};

std::optional<Scaled> match_scaled(const PatternGraph& graph, const Node& node, Matching matching) {
  if (!is(node, "Mul", 2)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    std::optional<Normalized> found = matching(graph, node.inputs[place]);
    const std::string& weight = node.inputs[1 - place];
    if (found && has_rank(graph, weight, found->axes)) return Scaled{std::move(*found), weight};
  }
  return std::nullopt;
}

Match normalization(const Node& root, const std::string& op_type, std::int64_t opset, Scaled scaled,
                    const std::string& bias) {
  std::vector<std::string> inputs = {scaled.normalized.x, scaled.weight};
  if (!bias.empty()) inputs.push_back(bias);
  Match match{std::move(scaled.normalized.inner),
              {node_like(root, op_type, opset, std::move(inputs))}};
  set_attribute(match.replacement.back(), "axis", -scaled.normalized.axes);
  set_attribute(match.replacement.back(), "epsilon", static_cast<float>(scaled.normalized.epsilon));
  return match;
}

}  // namespace

std::optional<Match> match_layer_norm(const PatternGraph& graph, const Node& root) {
  if (auto scaled = match_scaled(graph, root, match_standardized))
    return normalization(root, "LayerNormalization", 17, std::move(*scaled), "");
  if (!is(root, "Add", 2)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const Node* product = graph.producer(root.inputs[place], "Mul");
    if (product == nullptr) continue;
    auto scaled = match_scaled(graph, *product, match_standardized);
    const std::string& bias = root.inputs[1 - place];
    if (!scaled || !has_rank(graph, bias, scaled->normalized.axes)) continue;
    scaled->normalized.inner.push_back(product);
    return normalization(root, "LayerNormalization", 17, std::move(*scaled), bias);
  }
  return std::nullopt;
}

std::optional<Match> match_rms_norm(const PatternGraph& graph, const Node& root) {
  auto scaled = match_scaled(graph, root, match_division);
  if (!scaled) return std::nullopt;
  return normalization(root, "RMSNormalization", 23, std::move(*scaled), "");
}

}  // namespace decent::onnx
