#include "decent/model/weight_use.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "decent/model/forward_graph.h"

namespace decent {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

std::optional<c10::IValue> constant_of(const Node* node, const char* argument) {
  return torch::jit::toIValue(node->namedInput(argument));
}

bool has_no_groups(const Node* node) {
  const auto groups = constant_of(node, "groups");
  return groups && groups->isInt() && groups->toInt() == 1;
}

// Whether this is a convolution that is not transposed. Traced ones are in the form that says so.
bool is_convolution(const Node* node, std::string_view name) {
  if (name == "conv1d" || name == "conv2d" || name == "conv3d") return has_no_groups(node);
  if (name != "_convolution") return false;
  const auto transposed = constant_of(node, "transposed");
  return transposed && transposed->isBool() && !transposed->toBool() && has_no_groups(node);
}

// Whether the node exchanges the two dimensions of a matrix.
bool transposes(const Node* node, std::string_view name) {
  if (name == "t" || name == "numpy_T") return true;
  if (name == "transpose") {
    const auto first = constant_of(node, "dim0");
    const auto second = constant_of(node, "dim1");
    return first && second && first->isInt() && second->isInt() &&
           (first->toInt() - second->toInt()) % 2 != 0;
  }
  const auto order = name == "permute" ? constant_of(node, "dims") : std::nullopt;
  return order && order->isIntList() && order->toIntVector() == std::vector<std::int64_t>{1, 0};
}

bool gives_tensors(const Node* node) {
  for (const Value* output : node->outputs())
    if (output->type()->isSubtypeOf(*c10::TensorType::get())) return true;
  return !node->blocks().empty() || node->outputs().empty();
}

// Nothing for a use that only asks for the shape, the type and the like.
std::optional<WeightUse> use_by(const Use& use, bool flipped);

std::optional<WeightUse> use_by_all(const Value* value, bool flipped) {
  std::optional<WeightUse> common;
  for (const Use& use : value->uses()) {
    const auto each = use_by(use, flipped);
    if (!each) continue;
    if (common && *common != *each) return WeightUse::other;
    common = each;
  }
  return common;
}

std::optional<WeightUse> use_by(const Use& use, bool flipped) {
  const Node* node = use.user;
  if (!gives_tensors(node)) return std::nullopt;
  if (!node->kind().is_aten()) return WeightUse::other;
  const std::string_view name = node->kind().toUnqualString();
  const auto is = [&](std::string_view other, std::size_t place) {
    return name == other && use.offset == place;
  };
  if (use.offset == 0 && transposes(node, name)) return use_by_all(node->output(), !flipped);
  if (is("matmul", 1) || is("mm", 1) || is("addmm", 2))
    return flipped ? WeightUse::linear : WeightUse::transposed;
  if (flipped) return WeightUse::other;
  if (is("linear", 1)) return WeightUse::linear;
  if (is("embedding", 0)) return WeightUse::embedding;
  if (use.offset == 1 && is_convolution(node, name)) return WeightUse::convolution;
  return WeightUse::other;
}

// Visits every value that is the parameter of that name.
template <typename Visit>
void visit_values(const torch::jit::Graph& forward, const std::string& name, Visit visit) {
  visit_nodes(forward, [&](const Node* node) {
    if (node->kind() == c10::prim::GetAttr && attribute_path(node, forward) == name)
      visit(node->output());
  });
}

bool is_sparse_lookup(const Use& use) {
  const Node* node = use.user;
  if (node->kind() != c10::aten::embedding || use.offset != 0) return false;
  const auto sparse = constant_of(node, "sparse");
  return sparse && sparse->isBool() && sparse->toBool();
}

}  // namespace

bool has_sparse_gradient(const torch::jit::Graph& forward, const std::string& name) {
  bool found = false;
  visit_values(forward, name, [&](const Value* value) {
    found |= std::ranges::any_of(value->uses(), is_sparse_lookup);
  });
  return found;
}

WeightUse use_of(const torch::jit::Graph& forward, const std::string& name) {
  std::optional<WeightUse> common;
  visit_values(forward, name, [&](const Value* value) {
    const auto each = use_by_all(value, /*flipped=*/false);
    if (each) common = common && *common != *each ? WeightUse::other : each;
  });
  return common.value_or(WeightUse::other);
}

}  // namespace decent
