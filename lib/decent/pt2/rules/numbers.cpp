// Sizes and computations with them: ints, floats and bools of TorchScript.

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "decent/core/text.h"
#include "decent/pt2/translate/node_context.h"
#include "decent/pt2/translate/rules.h"

namespace decent::pt2 {
namespace {

std::string call_with_inputs(NodeContext& context, const std::string& function) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  return function + "(" + join(inputs) + ")";
}

// ---- of tensors

void size(NodeContext& context) {
  context.assign(context.input(0) + ".size(" + context.input(1) + ")");
}

void stride(NodeContext& context) {
  context.assign(context.input(0) + ".stride(" + context.input(1) + ")");
}

void numel(NodeContext& context) { context.assign(context.input(0) + ".numel()"); }

void storage_offset(NodeContext& context) {
  context.assign(context.input(0) + ".storage_offset()");
}

// ---- Python's operators and functions

struct Name {
  std::string_view python;
  std::string_view torchscript;
};

constexpr std::array kSigns = std::to_array<Name>({{"add", "+"},
                                                   {"sub", "-"},
                                                   {"mul", "*"},
                                                   {"truediv", "/"},
                                                   {"floordiv", "//"},
                                                   {"mod", "%"},
                                                   {"pow", "**"},
                                                   {"eq", "=="},
                                                   {"ne", "!="},
                                                   {"lt", "<"},
                                                   {"le", "<="},
                                                   {"gt", ">"},
                                                   {"ge", ">="},
                                                   {"and_", "&"},
                                                   {"or_", "|"}});

std::string_view python_type(const Argument& result) {
  if (std::holds_alternative<SymFloatArgument>(result)) return "float";
  return std::holds_alternative<SymBoolArgument>(result) ? "bool" : "int";
}

// Assigns the one result: "int(x)".
void assign_number(NodeContext& context, const std::string& expression) {
  if (context.node().outputs.size() != 1) throw Unsupported("gives no number");
  const std::string type(python_type(context.node().outputs.front()));
  context.assign(type + "(" + expression + ")");
}

void infix(NodeContext& context) {
  for (const Name& sign : kSigns) {
    if (sign.python != context.target().name) continue;
    return context.assign(context.input(0) + " " + std::string(sign.torchscript) + " " +
                          context.input(1));
  }
}

// TorchScript ends the process if an int is divided by 0, or the smallest int by -1; its compiler
// does so if both are constants, even in code that is never reached.
void division(NodeContext& context) {
  const Node& node = context.node();
  const bool is_whole = node.outputs.size() == 1 && python_type(node.outputs.front()) == "int";
  const auto* divisor =
      node.inputs.size() == 2 ? std::get_if<std::int64_t>(&node.inputs[1].value) : nullptr;
  if (!is_whole || (divisor != nullptr && *divisor > 0)) return infix(context);
  const std::string a = context.input(0);
  const std::string b = context.input(1);
  const bool is_rest = context.target().name == "mod";
  context.line("assert " + b + " != 0");
  context.assign(a + (is_rest ? " % " : " // ") + b + " if " + b + " > 0 or " + b + " < -1 else " +
                 (is_rest ? "0" : "-(" + a + ")"));
}

// The result is an int in Python but a float in TorchScript.
void power(NodeContext& context) {
  assign_number(context, "(" + context.input(0) + ") ** (" + context.input(1) + ")");
}

void negative(NodeContext& context) { context.assign("-" + context.input(0)); }
void negation(NodeContext& context) { context.assign("not " + context.input(0)); }
void minimum(NodeContext& context) { context.assign(call_with_inputs(context, "min")); }
void maximum(NodeContext& context) { context.assign(call_with_inputs(context, "max")); }
void to_float(NodeContext& context) { context.assign(call_with_inputs(context, "float")); }
void to_int(NodeContext& context) { context.assign(call_with_inputs(context, "int")); }

void square_root(NodeContext& context) { context.assign("(" + context.input(0) + ") ** 0.5"); }

// torch.sym_ite(condition, yes, no)
void choose(NodeContext& context) {
  context.assign(context.input(1) + " if " + context.input(0) + " else " + context.input(2));
}

// torch.sym_sum([a, b])
void sum(NodeContext& context) { context.assign(call_with_inputs(context, "sum")); }

// math.ceil and similar functions are the same in TorchScript.
void python_math(NodeContext& context) {
  context.assign(call_with_inputs(context, "math." + context.target().name));
}

// ---- elements of tensors

void item(NodeContext& context) { assign_number(context, context.input(0)); }

}  // namespace

std::span<const OperatorRule> number_rules() {
  static constexpr std::array kRules = std::to_array<OperatorRule>({
      {"aten.sym_size", size},
      {"aten.sym_stride", stride},
      {"aten.sym_numel", numel},
      {"aten.sym_storage_offset", storage_offset},
      {"aten.item", item},
      {"aten._local_scalar_dense", item},
      {"_operator.add", infix},
      {"_operator.sub", infix},
      {"_operator.mul", infix},
      {"_operator.truediv", infix},
      {"_operator.floordiv", division},
      {"_operator.mod", division},
      {"_operator.pow", power},
      {"_operator.eq", infix},
      {"_operator.ne", infix},
      {"_operator.lt", infix},
      {"_operator.le", infix},
      {"_operator.gt", infix},
      {"_operator.ge", infix},
      {"_operator.and_", infix},
      {"_operator.or_", infix},
      {"_operator.neg", negative},
      {"_operator.not_", negation},
      {"builtins.min", minimum},
      {"builtins.max", maximum},
      {"math.ceil", python_math},
      {"math.floor", python_math},
      {"math.trunc", to_int},
      {"math.sqrt", python_math},
      {"torch.sym_float", to_float},
      {"torch.sym_int", to_int},
      {"torch.sym_ite", choose},
      {"torch.sym_max", maximum},
      {"torch.sym_min", minimum},
      {"torch.sym_not", negation},
      {"torch.sym_sqrt", square_root},
      {"torch._sym_sqrt", square_root},
      {"torch.sym_sum", sum},
  });
  return kRules;
}

}  // namespace decent::pt2
