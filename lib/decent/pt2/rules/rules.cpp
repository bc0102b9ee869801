#include "decent/pt2/translate/rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "decent/core/text.h"
#include "decent/pt2/translate/node_context.h"

namespace decent::pt2 {
namespace {

std::map<std::string_view, Rule> all_rules() {
  std::map<std::string_view, Rule> rules;
  for (const auto table : {assertion_rules(), number_rules(), tensor_rules(), region_rules()}) {
    for (const OperatorRule& row : table) rules.emplace(row.name, row.rule);
  }
  return rules;
}

void refuse_region(NodeContext& /*context*/) {
  throw Unsupported(
      "is of higher order, and of such operators only cond, no_grad and autocast regions that are "
      "off are known: write a loop (map, scan, while_loop) as Python's for over a fixed "
      "number");
}

/// Advice on an operator of another library than PyTorch.
struct WayOut {
  std::string_view name;
  std::string_view text;
};

constexpr std::array kWaysOut = {
    WayOut{"transformers.grouped_mm_fallback",
           "model.set_experts_implementation(\"batched_mm\") before the export computes the same "
           "with PyTorch's own functions"},
    WayOut{"torchvision.deform_conv2d",
           "sample at the shifted positions with torch.nn.functional.grid_sample, and multiply by "
           "the weight"},
    WayOut{"torchvision.roi_align",
           "sample the regions with torch.nn.functional.grid_sample, or export to ONNX, whose "
           "RoiAlign is known"},
    WayOut{"torchvision.nms",
           "no gradient passes it: leave the choice of boxes out of the exported forward, and do "
           "it after the model"},
};

void refuse_library(NodeContext& context) {
  const std::string name = context.target().operator_name();
  const auto* known = std::find_if(kWaysOut.begin(), kWaysOut.end(),
                                   [&](const WayOut& each) { return each.name == name; });
  throw Unsupported("is an operator of " + in_quotes(context.target().library) +
                    ", of which this program knows none: " +
                    (known == kWaysOut.end() ? "write what it computes with PyTorch's own "
                                               "functions before the export"
                                             : std::string(known->text)));
}

// Refuses operators that only autograd and compilers may call, because their indices are not
// checked.
void refuse_internal(NodeContext& /*context*/) {
  throw Unsupported(
      "is an operator that only PyTorch itself calls, which trusts what it is given: save what "
      "torch.export.export gives, before it is decomposed");
}

bool is_internal(const Target& target) {
  const std::string& name = target.name;
  return name.find("_backward") != std::string::npos ||
         (name.find("_unsafe") != std::string::npos && name != "_unsafe_view");
}

// Refuses writes into lists of tensors, because TorchScript would assume that the node has no
// effect.
void refuse_written_lists(const NodeContext& context) {
  for (const SchemaArgument& argument : context.schema()->arguments) {
    const Argument* given = argument.is_written ? context.node().find(argument.name) : nullptr;
    if (given == nullptr || !std::holds_alternative<std::vector<TensorArgument>>(*given)) continue;
    throw Unsupported("writes into a list of tensors: write it as a loop over the tensors");
  }
}

void refuse_python(NodeContext& /*context*/) {
  throw Unsupported(
      "is a Python function on sizes that is not known: compute sizes with + - * // % and min, "
      "max");
}

}  // namespace

Rule rule_of(const Target& target) {
  static const std::map<std::string_view, Rule> kRules = all_rules();
  const auto row = kRules.find(target.operator_name());
  if (row != kRules.end()) return row->second;
  if (target.is_aten()) return is_internal(target) ? refuse_internal : call_operator;
  if (target.library == "higher_order") return refuse_region;
  const bool is_python = target.library == "_operator" || target.library == "math" ||
                         target.library == "torch" || target.library == "builtins";
  return is_python ? refuse_python : refuse_library;
}

void call_operator(NodeContext& context) {
  const Target& target = context.target();
  if (context.schema() == nullptr) {
    throw Unsupported(
        "is an operator that this version of LibTorch does not have: export with an "
        "older PyTorch, or without what calls it");
  }
  refuse_written_lists(context);
  const std::string call = context.call("torch." + target.name);
  const NodeWrites* writes = context.training_writes();
  if (writes == nullptr || !writes->gives_written) return context.assign(call);
  const BufferWrite& write = writes->tensors.front();
  context.assign(call + " if " + context.training(module_of_buffer(write.buffer)) + " else " +
                 context.input(write.input));
}

}  // namespace decent::pt2
