#include "decent/onnx/classify/inference_norms.h"

#include <algorithm>
#include <cmath>

#include "decent/onnx/classify/weight_slots.h"
#include "decent/onnx/format/elements.h"

namespace decent::onnx {
namespace {

// A batch norm has at most three operations between the root and the data.
constexpr std::size_t kMaxNormDepth = 12;
// Views are followed up to this many values.
constexpr std::size_t kMaxNormViews = 50;

bool is_standard(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && node.domain.empty();
}

bool is_sum(const Node& node) { return is_standard(node, "Add") || is_standard(node, "Sum"); }

bool is_product(const Node& node) { return is_standard(node, "Mul") || is_standard(node, "Div"); }

}  // namespace

InferenceNorms::InferenceNorms(const Uses& uses) : uses_(uses) {
  for (const Tensor* tensor : uses.initializers()) {
    // The root of a single number is a scale, such as that of attention.
    if (!is_floating(tensor->type) || tensor->count() <= 1) continue;
    for (const Use& use : readers_through_views(uses.of(*tensor))) {
      if (use.node != nullptr && is_sum(*use.node)) add_sum(*use.node);
    }
  }
}

void InferenceNorms::add_sum(const Node& node) {
  if (node.outputs.size() != 1 || uses_.varies(uses_.outputs(node).front())) return;
  for (const Use& use : readers_of(node)) {
    if (!is_root(use)) continue;
    const bool scales = visit(uses_.outputs(*use.node).front(), 0);
    std::string_view& role = sums_[&node];
    if (scales || role.empty()) role = scales ? kNormVariance : kUnderRoot;
  }
}

std::string_view InferenceNorms::role_of(const Use& use) const {
  if (use.node == nullptr) return "";
  const auto sum = sums_.find(use.node);
  if (sum != sums_.end()) return sum->second;
  return is_mean(use) ? kNormMean : "";
}

// Sqrt, or Pow with an exponent of 0.5 or -0.5.
bool InferenceNorms::is_root(const Use& use) const {
  if (use.node == nullptr || use.input != 0 || use.node->outputs.size() != 1) return false;
  if (is_standard(*use.node, "Sqrt")) return true;
  if (!is_standard(*use.node, "Pow")) return false;
  const Tensor* exponent = uses_.initializer(*use.node, 1);
  if (exponent == nullptr || !is_floating(exponent->type) || exponent->count() != 1) return false;
  return std::abs(as_doubles(*exponent).front()) == 0.5;
}

std::vector<Use> InferenceNorms::readers_through_views(ValueId value) const {
  std::vector<Use> readers;
  std::vector<ValueId> reached = {value};
  for (std::size_t i = 0; i < reached.size() && i < kMaxNormViews; ++i) {
    for (const Use& use : uses_.readers(reached[i])) {
      const Slot slot = use.node == nullptr ? Slot::other : slot_of(*use.node, use.input);
      if (slot == Slot::shape) continue;
      if (slot != Slot::view) {
        readers.push_back(use);
        continue;
      }
      const std::vector<ValueId>& outputs = uses_.outputs(*use.node);
      reached.insert(reached.end(), outputs.begin(), outputs.end());
    }
  }
  return readers;
}

// Whether a value that is computed from a root and constants scales the data further on. A factor
// of the mean scales nothing, because the product is only subtracted.
bool InferenceNorms::visit(ValueId deviation, std::size_t depth) {
  const auto [known, is_new] = scales_.try_emplace(deviation, false);
  if (!is_new || depth > kMaxNormDepth) return known->second;
  bool scales = false;
  for (const Use& use : readers_through_views(deviation))
    scales = visit_use(use, depth + 1) || scales;
  scales_[deviation] = scales;
  return scales;
}

bool InferenceNorms::visit_use(const Use& use, std::size_t depth) {
  if (use.node == nullptr || use.node->outputs.size() != 1) return false;
  const Node& node = *use.node;
  if (slot_of(node, use.input) == Slot::weight) return true;
  if (is_standard(node, "Reciprocal") || is_standard(node, "Neg"))
    return visit(uses_.outputs(node).front(), depth);
  return is_product(node) && node.inputs.size() == 2 && visit_factor(use, depth);
}

bool InferenceNorms::visit_factor(const Use& use, std::size_t depth) {
  const Node& node = *use.node;
  if (uses_.input_varies(node, 1 - use.input)) {
    scalings_.insert(&node);
    return true;
  }
  const ValueId product = uses_.outputs(node).front();
  if (visit(product, depth)) return true;
  if (is_shift(product)) means_.insert(&node);
  return false;
}

// The readers of a node's only output.
std::vector<Use> InferenceNorms::readers_of(const Node& node) const {
  const std::vector<ValueId>& outputs = uses_.outputs(node);
  return outputs.size() == 1 ? readers_through_views(outputs.front()) : std::vector<Use>{};
}

// Whether a value is only added and subtracted.
bool InferenceNorms::is_shift(ValueId value) const {
  const auto is_added = [](const Use& use) { return use.node != nullptr && is_sum(*use.node); };
  const std::vector<Use> readers = readers_through_views(value);
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](const Use& use) {
    if (is_added(use)) return true;
    if (use.node == nullptr || !is_standard(*use.node, "Neg"))
      return use.node != nullptr && is_standard(*use.node, "Sub");
    const std::vector<Use> next = readers_of(*use.node);
    return !next.empty() && std::all_of(next.begin(), next.end(), is_added);
  });
}

bool InferenceNorms::is_scaled(const Node& node) const {
  const std::vector<Use> readers = readers_of(node);
  return std::any_of(readers.begin(), readers.end(),
                     [&](const Use& use) { return scalings_.contains(use.node); });
}

// Whether the tensor is a mean: multiplied by the scale of the data, or subtracted from the data
// before it is scaled.
bool InferenceNorms::is_mean(const Use& use) const {
  if (means_.contains(use.node)) return true;
  if (is_standard(*use.node, "Sub")) return use.input == 1 && is_scaled(*use.node);
  if (!is_standard(*use.node, "Neg")) return false;
  const std::vector<Use> readers = readers_of(*use.node);
  return std::any_of(readers.begin(), readers.end(), [&](const Use& reader) {
    if (reader.node == nullptr) return false;
    return means_.contains(reader.node) || (is_sum(*reader.node) && is_scaled(*reader.node));
  });
}

}  // namespace decent::onnx
