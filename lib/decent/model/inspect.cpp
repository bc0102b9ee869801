#include "decent/model/inspect.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "decent/model/forward_graph.h"

namespace decent {
namespace {

bool is_one_of(const torch::jit::Node* node, std::initializer_list<std::string_view> operators) {
  const bool is_aten = node->kind().is_aten();
  return is_aten && std::find(operators.begin(), operators.end(), node->kind().toUnqualString()) !=
                        operators.end();
}

// Whether the value depends on the train/eval switch of some module, through arguments or through
// the branches that choose it. Tensors are not followed, because their contents do not decide the
// mode.
bool follows_the_mode(const torch::jit::Value* value) {
  std::vector<const torch::jit::Value*> left = {value};
  std::set<const torch::jit::Value*> seen;
  while (!left.empty()) {
    const torch::jit::Value* next = left.back();
    left.pop_back();
    if (!seen.insert(next).second || next->type()->isSubtypeOf(*c10::TensorType::get())) continue;
    const torch::jit::Node* source = next->node();
    if (source->kind() == c10::prim::GetAttr && source->s(c10::attr::name) == "training")
      return true;
    left.insert(left.end(), source->inputs().begin(), source->inputs().end());
    if (source->kind() != c10::prim::If) continue;
    for (const torch::jit::Block* branch : source->blocks())
      left.push_back(branch->outputs()[next->offset()]);
  }
  return false;
}

// Whether only one mode reaches the node, as with dropout in nn.MultiheadAttention, which is always
// told to train but only reached in train mode.
bool is_reached_by_mode(const torch::jit::Node* node) {
  const torch::jit::Node* around = node->owningBlock()->owningNode();
  for (; around != nullptr; around = around->owningBlock()->owningNode()) {
    if (around->kind() == c10::prim::If && follows_the_mode(around->input(0))) return true;
  }
  return false;
}

bool has_constant_mode(const torch::jit::Node* node) {
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return false;
  for (const char* argument : {"train", "training"}) {
    const auto index = schema->argumentIndexWithName(argument);
    if (!index || static_cast<std::size_t>(*index) >= node->inputs().size()) continue;
    const torch::jit::Node* source = node->input(static_cast<std::size_t>(*index))->node();
    if (source->kind() == c10::prim::Constant) return !is_reached_by_mode(node);
  }
  return false;
}

// Whether the node gives a tensor on the CPU whatever its inputs are.
bool works_on_the_cpu(const torch::jit::Node* node) {
  if (std::string_view(node->kind().toUnqualString()) == "cpu") return true;
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  const auto index = schema ? schema->argumentIndexWithName("device") : std::nullopt;
  if (!index || static_cast<std::size_t>(*index) >= node->inputs().size()) return false;
  const auto device = torch::jit::toIValue(node->input(static_cast<std::size_t>(*index)));
  if (device && device->isDevice()) return device->toDevice().is_cpu();
  const auto inputs = node->inputs();
  const bool follows_an_input =
      std::any_of(inputs.begin(), inputs.end(), [](const torch::jit::Value* input) {
        return input->type()->isSubtypeOf(*c10::TensorType::get());
      });
  return device && device->isNone() && !follows_an_input;
}

// Whether the node is told to give a tensor on a GPU.
bool works_on_a_gpu(const torch::jit::Node* node) {
  if (std::string_view(node->kind().toUnqualString()) == "cuda") return true;
  const auto inputs = node->inputs();
  return node->kind().is_aten() &&
         std::any_of(inputs.begin(), inputs.end(), [](const torch::jit::Value* input) {
           const auto device = torch::jit::toIValue(input);
           return device && device->isDevice() && device->toDevice().is_cuda();
         });
}

// "2 x dropout", for all operators that `counts` accepts.
std::vector<std::string> count_operators(
    const torch::jit::Graph& forward, const std::function<bool(const torch::jit::Node*)>& counts) {
  std::map<std::string, int> found;
  visit_nodes(forward, [&](const torch::jit::Node* node) {
    if (counts(node)) ++found[node->kind().toUnqualString()];
  });
  std::vector<std::string> result;
  for (const auto& [name, count] : found) result.push_back(std::to_string(count) + " x " + name);
  return result;
}

}  // namespace

std::vector<std::string> find_fixed_mode_operators(const torch::jit::Graph& forward) {
  return count_operators(forward, has_constant_mode);
}

std::vector<std::string> find_cpu_operators(const torch::jit::Graph& forward) {
  return count_operators(forward, works_on_the_cpu);
}

std::vector<std::string> find_gpu_operators(const torch::jit::Graph& forward) {
  return count_operators(forward, works_on_a_gpu);
}

std::set<std::string> modules_whose_mode_is_read(const torch::jit::Graph& forward) {
  std::set<std::string> modules;
  visit_nodes(forward, [&](const torch::jit::Node* node) {
    if (node->kind() != c10::prim::GetAttr || node->s(c10::attr::name) != "training") return;
    const auto path = attribute_path(node, forward);
    if (!path) return;
    const std::size_t dot = path->rfind('.');
    modules.insert(dot == std::string::npos ? "" : path->substr(0, dot));
  });
  return modules;
}

bool reads_data_of_tensors(const torch::jit::Graph& forward) {
  bool found = false;
  visit_nodes(forward, [&](const torch::jit::Node* node) {
    found = found || std::string_view(node->kind().toUnqualString()) == "data";
  });
  return found;
}

bool ends_in_sigmoid(const torch::jit::Graph& forward) {
  if (forward.outputs().size() != 1) return false;
  const torch::jit::Node* node = forward.outputs().front()->node();
  while (is_one_of(node, {"view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "to",
                          "permute", "transpose", "select", "slice"}))
    node = node->inputs().front()->node();
  return is_one_of(node, {"sigmoid", "sigmoid_", "special_expit"});
}

}  // namespace decent
