#include "decent/model/constants.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "decent/model/forward_graph.h"

namespace decent {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// Operators that take a tensor without dimensions on the CPU together with tensors on a GPU, and
// then compute on the GPU. Their gradients must do so, too: pow() is missing, because its gradient
// calls where(), which requires one device.
const std::set<std::string_view> kElementwise = {
    "abs",         "add",         "alias",        "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "ceil",        "clone",        "detach",      "div",         "divide",
    "eq",          "floor",       "floor_divide", "fmod",        "ge",          "gt",
    "le",          "logical_and", "logical_not",  "logical_or",  "logical_xor", "lt",
    "maximum",     "minimum",     "mul",          "multiply",    "ne",          "neg",
    "remainder",   "round",       "rsub",         "sub",         "subtract",    "to",
    "true_divide", "trunc",       "type_as"};

// Operators that read the number in a tensor without dimensions, for which the host would wait for
// a GPU.
const std::set<std::string_view> kReaders = {
    "Bool", "Float", "FloatImplicit", "Int", "IntImplicit", "ScalarImplicit", "is_nonzero", "item"};

std::string_view operator_name(const Node* node) {
  return node->kind().is_aten() ? node->kind().toUnqualString() : "";
}

bool is_tensor(const Value* value) { return value->type()->isSubtypeOf(*c10::TensorType::get()); }

// `argument` counts from 0.
bool wants_the_cpu(const Node* node, std::size_t argument) {
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr || argument >= schema->arguments().size()) return false;
  const std::string& name = schema->arguments()[argument].name();
  const std::string_view called = operator_name(node);
  return name == "batch_sizes" || (called == "_pack_padded_sequence" && name == "lengths") ||
         (called == "tensor_split" && name == "tensor_indices_or_sections") ||
         (called == "narrow" && name == "start");
}

const at::Tensor* constant_of(const Node* node) {
  if (node->kind() != c10::prim::Constant || !node->hasAttribute(c10::attr::value) ||
      node->kindOf(c10::attr::value) != torch::jit::AttributeKind::t)
    return nullptr;
  const at::Tensor& constant = node->t(c10::attr::value);
  return constant.defined() ? &constant : nullptr;
}

bool is_integer(const at::Tensor& tensor) {
  return tensor.dim() == 0 && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

bool is_elementwise(const Node* node) {
  return kElementwise.count(operator_name(node)) > 0 && node->outputs().size() == 1;
}

// Finds out how forward computes with integers that stay on the CPU.
class Integers {
 public:
  explicit Integers(const torch::jit::Graph& forward) {
    visit_nodes(forward, [this](const Node* node) {
      if (!gives_integers(node)) return;
      for (const Value* output : node->outputs()) on_the_cpu_.insert(output);
    });
  }

  // Whether every use of an integer accepts one on the CPU, and likewise every use of values that
  // are computed from it without anything on a GPU.
  bool may_stay(const Value* integer) const {
    std::vector<const Value*> left = {integer};
    std::set<const Value*> seen;
    while (!left.empty()) {
      const Value* next = left.back();
      left.pop_back();
      if (!seen.insert(next).second) continue;
      for (const Use& use : next->uses()) {
        if (kReaders.count(operator_name(use.user)) > 0 || wants_the_cpu(use.user, use.offset))
          continue;
        if (!is_elementwise(use.user)) return false;
        if (may_be_on_the_cpu(use.user->output())) left.push_back(use.user->output());
      }
    }
    return true;
  }

 private:
  bool may_be_on_the_cpu(const Value* value) const {
    const bool is_of_a_block = value->node()->kind() == c10::prim::Param &&
                               value->node()->owningBlock()->owningNode() != nullptr;
    return is_of_a_block || on_the_cpu_.count(value) > 0;
  }

  // The results of branches and loops are not known, so they may be integers.
  bool gives_integers(const Node* node) const {
    if (const at::Tensor* constant = constant_of(node)) return is_integer(*constant);
    const c10::Symbol kind = node->kind();
    if (kind == c10::prim::NumToTensor || kind == c10::aten::tensor ||
        kind == c10::aten::scalar_tensor || kind == c10::prim::If || kind == c10::prim::Loop)
      return true;
    const auto inputs = node->inputs();
    return is_elementwise(node) &&
           std::all_of(inputs.begin(), inputs.end(), [this](const Value* input) {
             return !is_tensor(input) || may_be_on_the_cpu(input);
           });
  }

  std::set<const Value*> on_the_cpu_;
};

bool is_only_wanted_on_the_cpu(const Value* value) {
  const auto& uses = value->uses();
  return std::all_of(uses.begin(), uses.end(),
                     [](const Use& use) { return wants_the_cpu(use.user, use.offset); });
}

}  // namespace

std::vector<at::Tensor> constants_to_move(const torch::jit::Graph& forward) {
  const Integers integers(forward);
  std::vector<at::Tensor> moving;
  visit_nodes(forward, [&](const Node* node) {
    const at::Tensor* constant = constant_of(node);
    if (constant == nullptr) return;
    if (is_integer(*constant) ? integers.may_stay(node->output())
                              : is_only_wanted_on_the_cpu(node->output()))
      return;
    const auto is_known = [&](const at::Tensor& other) { return other.is_same(*constant); };
    if (std::none_of(moving.begin(), moving.end(), is_known)) moving.push_back(*constant);
  });
  return moving;
}

}  // namespace decent
