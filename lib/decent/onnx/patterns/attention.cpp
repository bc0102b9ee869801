// softmax(q k^T * scale + mask) v as PyTorch's scaled_dot_product_attention, which neither computes
// nor keeps the softmax of all pairs of positions if the device has a kernel for it. This applies
// only if both give the same for every input: without a mask, with a causal mask, or if the file
// gives zeros for fully masked rows, as PyTorch does.

#include <algorithm>
#include <cmath>

#include "decent/onnx/patterns/pattern_matchers.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {
namespace {

constexpr std::int64_t kRank = 4;  // batch, heads, positions, features
constexpr double kMasked = -1e30;  // exp() of it is zero beside any score

using Integers = std::vector<std::int64_t>;

Integers permutation(const Node& transpose) {
  const Attribute* perm = transpose.find("perm");
  const auto* list = perm == nullptr ? nullptr : std::get_if<Integers>(&perm->value);
  return list == nullptr ? Integers{} : *list;
}

/// Keys. The file multiplies by their transpose.
struct Keys {
  std::string source;
  Integers perm;  // turns the source into the keys; empty: the source is the keys
};

// A Slice [begin:end] of the shape of a tensor, along its only axis.
bool is_part_of_shape(const PatternGraph& graph, const std::string& name, const std::string& x,
                      std::optional<double> begin, std::optional<double> end) {
  const Node* slice = graph.producer(name, "Slice");
  if (slice == nullptr || slice->inputs.size() != 3) return false;
  const Node* shape = graph.producer(slice->inputs[0], "Shape");
  const SmallConstant* from = graph.constant(slice->inputs[1]);
  const SmallConstant* to = graph.constant(slice->inputs[2]);
  if (shape == nullptr || shape->inputs.front() != x || from == nullptr || to == nullptr)
    return false;
  if (int_attribute(*shape, "start", 0) != 0 || shape->find("end") != nullptr) return false;
  if (from->values.size() != 1 || to->values.size() != 1) return false;
  constexpr double kUnbounded = 1e9;
  const bool begins = begin ? from->values[0] == *begin : from->values[0] < -kUnbounded;
  const bool ends = end ? to->values[0] == *end : to->values[0] > kUnbounded;
  return begins && ends;
}

// Dynamo's exporter writes a transpose as Reshape [-1, S, E], Transpose, Reshape [.., E, S].
std::optional<Keys> match_flat_transpose(const PatternGraph& graph, const Node& last) {
  const Node* transpose = graph.producer(last.inputs[0], "Transpose");
  const Node* first =
      transpose == nullptr ? nullptr : graph.producer(transpose->inputs[0], "Reshape");
  if (first == nullptr || permutation(*transpose) != Integers{0, 2, 1}) return std::nullopt;
  const std::string& keys = first->inputs[0];
  const Node* flat = graph.producer(first->inputs[1], "Concat");
  const Node* whole = graph.producer(last.inputs[1], "Concat");
  if (flat == nullptr || whole == nullptr || flat->inputs.size() != 3 || whole->inputs.size() != 3)
    return std::nullopt;
  const auto is_part = [&](const std::string& name, auto begin, auto end) {
    return is_part_of_shape(graph, name, keys, begin, end);
  };
  const std::optional<double> open;
  const std::optional<double> last_but_one = -2;
  const std::optional<double> last_one = -1;
  const SmallConstant* rest = graph.constant(flat->inputs[0]);
  const bool matches = rest != nullptr && rest->values == std::vector<double>{-1} &&
                       is_part(flat->inputs[1], last_but_one, last_one) &&
                       is_part(flat->inputs[2], last_one, open) &&
                       is_part(whole->inputs[0], open, last_but_one) &&
                       is_part(whole->inputs[1], last_one, open) &&
                       is_part(whole->inputs[2], last_but_one, last_one);
  return matches ? std::optional(Keys{keys, {}}) : std::nullopt;
}

std::optional<Keys> match_keys(const PatternGraph& graph, const std::string& transposed) {
  const Node* node = graph.producer(transposed);
  if (node != nullptr && is(*node, "Reshape", 2)) return match_flat_transpose(graph, *node);
  if (node == nullptr || !is(*node, "Transpose", 1)) return std::nullopt;
  Integers perm = permutation(*node);
  if (perm.size() != static_cast<std::size_t>(kRank)) return std::nullopt;
  std::swap(perm[kRank - 2], perm[kRank - 1]);
  return Keys{node->inputs[0], perm};
}

/// Queries and keys with their factor.
struct Scores {
  std::string queries;
  Keys keys;
  std::optional<double> scale;  // without: 1 / sqrt(features)
};

const Node* skip_casts(const PatternGraph& graph, const Node* node) {
  while (node != nullptr && (is(*node, "Cast", 1) || is(*node, "CastLike", 2)))
    node = graph.producer(node->inputs[0]);
  return node;
}

// Sqrt(1 / Sqrt(features of q)), computed when the model runs.
bool is_root_of_usual_scale(const PatternGraph& graph, const std::string& name,
                            const std::string& queries) {
  const Node* outer = skip_casts(graph, graph.producer(name));
  if (outer == nullptr || !is(*outer, "Sqrt", 1)) return false;
  const Node* division = skip_casts(graph, graph.producer(outer->inputs[0]));
  if (division == nullptr || !is(*division, "Div", 2)) return false;
  const auto one = graph.constant(division->inputs[0]);
  const Node* inner = skip_casts(graph, graph.producer(division->inputs[1]));
  if (one == nullptr || one->values != std::vector<double>{1} || inner == nullptr ||
      !is(*inner, "Sqrt", 1))
    return false;
  const Node* features = skip_casts(graph, graph.producer(inner->inputs[0]));
  if (features == nullptr) return false;
  if (features->op_type == "Slice")
    return is_part_of_shape(graph, features->outputs[0], queries, -1, std::nullopt);
  const Node* shape = graph.producer(features->inputs[0], "Shape");
  return is(*features, "Gather", 2) && shape != nullptr && shape->inputs[0] == queries &&
         graph.is_scalar(features->inputs[1], -1);
}

// The name of the value that a Mul multiplies, and its factor.
std::optional<std::pair<std::string, std::string>> match_scaled(const PatternGraph& graph,
                                                                const std::string& name) {
  const Node* node = graph.producer(name, "Mul");
  if (node == nullptr || node->inputs.size() != 2) return std::nullopt;
  return std::pair{node->inputs[0], node->inputs[1]};
}

std::optional<Scores> match_scores(const PatternGraph& graph, const Node& product) {
  const auto left = match_scaled(graph, product.inputs[0]);
  const auto right = match_scaled(graph, product.inputs[1]);
  if (left && right && is_root_of_usual_scale(graph, left->second, left->first) &&
      is_root_of_usual_scale(graph, right->second, left->first)) {
    const auto keys = match_keys(graph, right->first);
    if (keys) return Scores{left->first, *keys, std::nullopt};
  }
  double scale = 1;
  const auto without_constant = [&](const std::string& name, const auto& scaled) {
    const auto number = scaled ? graph.scalar(scaled->second) : std::nullopt;
    if (!number) return name;
    scale *= *number;
    return scaled->first;
  };
  const std::string queries = without_constant(product.inputs[0], left);
  const auto keys = match_keys(graph, without_constant(product.inputs[1], right));
  return keys ? std::optional(Scores{queries, *keys, scale}) : std::nullopt;
}

// The scores, and the mask that is added to them.
struct Masked {
  const Node* scores = nullptr;
  std::string mask;
  double scale = 1;
  std::vector<const Node*> inner;
};

std::optional<Masked> match_matrix(const PatternGraph& graph, const std::string& name) {
  const Node* node = graph.producer(name);
  if (node == nullptr) return std::nullopt;
  if (is(*node, "MatMul", 2)) return Masked{node, "", 1, {node}};
  const Product product = product_of(graph, *node);
  if (product.factors.size() != 1) return std::nullopt;
  const Node* matrix = graph.producer(product.factors.front(), "MatMul");
  if (matrix == nullptr || matrix->inputs.size() != 2) return std::nullopt;
  Masked masked{matrix, "", product.scale, product.inner};
  masked.inner.insert(masked.inner.end(), {node, matrix});
  return masked;
}

std::optional<Masked> match_masked(const PatternGraph& graph, const std::string& name) {
  if (auto plain = match_matrix(graph, name)) return plain;
  const Node* sum = graph.producer(name, "Add");
  if (sum == nullptr || sum->inputs.size() != 2) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    auto masked = match_matrix(graph, sum->inputs[place]);
    if (!masked) continue;
    masked->mask = sum->inputs[1 - place];
    masked->inner.push_back(sum);
    return masked;
  }
  return std::nullopt;
}

// The number of queries or keys, as a part of a shape.
bool is_length_of_queries(const PatternGraph& graph, const std::string& name,
                          const Scores& scores) {
  return is_part_of_shape(graph, name, scores.queries, -2, -1);
}

bool is_length_of_keys(const PatternGraph& graph, const std::string& name, const Scores& scores) {
  if (scores.keys.perm.empty()) return is_part_of_shape(graph, name, scores.keys.source, -2, -1);
  // The file may transpose the same tensor twice: for the shape and for the product.
  const Node* slice = graph.producer(name, "Slice");
  const Node* shape = slice == nullptr ? nullptr : graph.producer(slice->inputs[0], "Shape");
  if (shape == nullptr) return false;
  const Node* transpose = graph.producer(shape->inputs[0], "Transpose");
  return transpose != nullptr && transpose->inputs[0] == scores.keys.source &&
         permutation(*transpose) == scores.keys.perm &&
         is_part_of_shape(graph, name, shape->inputs[0], -2, -1);
}

// Where(Trilu(ones of queries by keys) == 0, -inf, 0).
bool is_computed_causal(const PatternGraph& graph, const std::string& name, const Scores& scores) {
  const Node* where = skip_casts(graph, graph.producer(name));
  if (where == nullptr || !is(*where, "Where", 3) || !graph.is_scalar(where->inputs[2], 0))
    return false;
  const auto masked = graph.scalar(where->inputs[1]);
  const Node* equal = graph.producer(where->inputs[0], "Equal");
  if (!masked || !(*masked <= kMasked) || equal == nullptr) return false;
  const std::string* triangle = input_beside(graph, *equal, 0);
  const Node* lower = triangle == nullptr ? nullptr : graph.producer(*triangle, "Trilu");
  if (lower == nullptr || lower->inputs.size() != 1 || int_attribute(*lower, "upper", 1) != 0)
    return false;
  const Node* ones = graph.producer(lower->inputs[0], "Expand");
  if (ones == nullptr || ones->inputs.size() != 2 || !graph.is_scalar(ones->inputs[0], 1))
    return false;
  const Node* sizes = graph.producer(ones->inputs[1], "Concat");
  return sizes != nullptr && sizes->inputs.size() == 2 &&
         is_length_of_queries(graph, sizes->inputs[0], scores) &&
         is_length_of_keys(graph, sizes->inputs[1], scores);
}

// The same as a constant. Softmax along the keys needs both sizes to be the mask's.
bool is_constant_causal(const PatternGraph& graph, const std::string& name) {
  const SmallConstant* mask = graph.constant(name);
  if (mask == nullptr || mask->dims.size() < 2 || mask->dims.back() < 2) return false;
  const auto size = static_cast<std::size_t>(mask->dims.back());
  if (mask->values.size() != size * size || mask->dims[mask->dims.size() - 2] != mask->dims.back())
    return false;
  for (std::size_t i = 0; i < mask->values.size(); ++i) {
    const bool is_later = i % size > i / size;
    if (is_later ? !(mask->values[i] <= kMasked) : mask->values[i] != 0) return false;
  }
  return true;
}

bool is_last_axis(const PatternGraph& graph, const Node& softmax) {
  const std::int64_t axis = int_attribute(softmax, "axis", graph.opset(softmax) < 13 ? 1 : -1);
  return axis == -1 || axis == kRank - 1;
}

// The Softmax of either kind that makes a value; `is_safe` says whether it gives zeros for masked
// rows.
const Node* find_softmax(const PatternGraph& graph, const std::string& name, bool& is_safe) {
  const Node* node = graph.producer(name);
  if (node == nullptr || node->inputs.size() != 1) return nullptr;
  is_safe = node->domain == kPatternDomain && node->op_type == "SafeSoftmax";
  if (!is_safe && !is(*node, "Softmax", 1)) return nullptr;
  return is_last_axis(graph, *node) ? node : nullptr;
}

Match attention(const Node& root, std::vector<const Node*> inner, const Scores& scores,
                const std::string& values, const std::string& mask, bool is_causal) {
  Match match{std::move(inner), {}};
  std::string keys = scores.keys.source;
  if (!scores.keys.perm.empty()) {
    match.replacement.push_back(node_before(root, "Transpose", 13, {keys}, "keys"));
    set_attribute(match.replacement.back(), "perm", scores.keys.perm);
    keys = match.replacement.back().outputs.front();
  }
  std::vector<std::string> inputs = {scores.queries, keys, values};
  if (!mask.empty() && !is_causal) inputs.push_back(mask);
  match.replacement.push_back(node_like(root, "Attention", 0, std::move(inputs)));
  Node& node = match.replacement.back();
  node.domain = kPatternDomain;
  if (is_causal) set_attribute(node, "is_causal", std::int64_t{1});
  if (scores.scale) set_attribute(node, "scale", static_cast<float>(*scores.scale));
  return match;
}

}  // namespace

// Softmax -> IsNaN -> Where: exporters write the softmax of scaled_dot_product_attention in this
// way, which gives zeros for fully masked rows. In parts, the gradient of such a row is NaN,
// because it goes through the softmax that gave NaN; PyTorch's gradient is zero.
std::optional<Match> match_safe_softmax(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Where", 3) || !graph.is_scalar(root.inputs[1], 0)) return std::nullopt;
  const Node* is_nan = graph.producer(root.inputs[0], "IsNaN");
  const Node* softmax = graph.producer(root.inputs[2], "Softmax");
  if (is_nan == nullptr || softmax == nullptr || is_nan->inputs.front() != root.inputs[2])
    return std::nullopt;
  // Before opset 13 the axes from `axis` on count as one, and the default axis is the second.
  const bool is_old = graph.opset(*softmax) < 13;
  const std::int64_t axis = int_attribute(*softmax, "axis", is_old ? 1 : -1);
  if (is_old && axis != -1 && graph.rank(softmax->inputs.front()) != axis + 1) return std::nullopt;
  Match match{{is_nan, softmax}, {node_like(root, "SafeSoftmax", 0, {softmax->inputs.front()})}};
  match.replacement.back().domain = kPatternDomain;
  set_attribute(match.replacement.back(), "axis", axis);
  return match;
}

std::optional<Match> match_attention(const PatternGraph& graph, const Node& root) {
  if (!is(root, "MatMul", 2)) return std::nullopt;
  bool is_safe = false;
  const Node* softmax = find_softmax(graph, root.inputs[0], is_safe);
  if (softmax == nullptr) return std::nullopt;
  auto masked = match_masked(graph, softmax->inputs[0]);
  if (!masked) return std::nullopt;
  auto scores = match_scores(graph, *masked->scores);
  if (!scores || graph.rank(scores->queries) != kRank || graph.rank(root.inputs[1]) != kRank)
    return std::nullopt;
  if (scores->keys.perm.empty() && graph.rank(scores->keys.source) != kRank) return std::nullopt;
  if (!scores->scale && masked->scale != 1) return std::nullopt;
  if (scores->scale) *scores->scale *= masked->scale;
  const std::string& mask = masked->mask;
  const bool is_causal = !mask.empty() && (is_constant_causal(graph, mask) ||
                                           is_computed_causal(graph, mask, *scores));
  if (!mask.empty() && !is_causal && !is_safe) return std::nullopt;
  masked->inner.push_back(softmax);
  return attention(root, std::move(masked->inner), *scores, root.inputs[1], mask, is_causal);
}

}  // namespace decent::onnx
