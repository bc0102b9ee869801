#include "decent/model/weight_use.h"

#include <torch/csrc/jit/ir/constants.h>

#include <optional>
#include <string_view>
#include <vector>

#include "decent/model/forward_graph.h"

namespace decent {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// The name of the attribute that a node reads: "layer1.weight"; "" if its owner cannot be told.
std::string name_of(const Node* node, const torch::jit::Graph& forward) {
  std::string name = node->s(c10::attr::name);
  const Value* owner = node->input();
  for (; owner->node()->kind() == c10::prim::GetAttr; owner = owner->node()->input())
    name = owner->node()->s(c10::attr::name) + "." + name;
  return owner == forward.inputs()[0] ? name : "";
}

bool has_no_groups(const Node* node) {
  const Value* groups = node->namedInput("groups");
  const auto value = torch::jit::toIValue(groups);
  return value && value->isInt() && value->toInt() == 1;
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
  if (is("t", 0) || is("numpy_T", 0)) return use_by_all(node->output(), !flipped);
  if (is("matmul", 1) || is("mm", 1) || is("addmm", 2))
    return flipped ? WeightUse::linear : WeightUse::transposed;
  if (flipped) return WeightUse::other;
  if (is("linear", 1)) return WeightUse::linear;
  if (is("embedding", 0)) return WeightUse::embedding;
  if ((is("conv1d", 1) || is("conv2d", 1) || is("conv3d", 1)) && has_no_groups(node))
    return WeightUse::convolution;
  return WeightUse::other;
}

}  // namespace

WeightUse use_of(const torch::jit::Graph& forward, const std::string& name) {
  std::optional<WeightUse> common;
  visit_nodes(forward, [&](const Node* node) {
    if (node->kind() != c10::prim::GetAttr || name_of(node, forward) != name) return;
    const auto each = use_by_all(node->output(), /*flipped=*/false);
    if (each) common = common && *common != *each ? WeightUse::other : each;
  });
  return common.value_or(WeightUse::other);
}

}  // namespace decent
