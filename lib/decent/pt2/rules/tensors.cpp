// Operators of tensors that need more, less or something else than a call of the operator's name.

#include <array>
#include <string>

#include "decent/core/script_text.h"
#include "decent/pt2/translate/node_context.h"
#include "decent/pt2/translate/rules.h"

namespace decent::pt2 {
namespace {

// A constant of the program. It is copied, because other nodes may write into it.
void copy_of_constant(NodeContext& context) { context.assign(context.input(0) + ".clone()"); }

// The node that makes the noise of stochastic depth: nothing is dropped in evaluation.
void noise(NodeContext& context) {
  const ModeSwitch* found = context.mode_switch();
  if (found == nullptr) return call_operator(context);
  const std::string& name = context.target().name;
  const std::string instead = name.ends_with('_') ? "torch.fill_(" : "torch.full_like(";
  context.assign(context.call("torch." + name) + " if " + context.training() + " else " + instead +
                 context.input("self") + ", " + literal(found->in_evaluation) + ")");
}

// torch.export leaves out a contiguous() that changed nothing where it ran, but strides may differ
// here: those of a convolution follow the memory format, those of attention the device. Where a
// view is possible, reshape returns one; else it copies, and so may not stand for a view that is
// written.
void view(NodeContext& context) {
  const bool is_of_another_dtype = !context.target().overload.empty();
  if (is_of_another_dtype || context.is_written_later()) return call_operator(context);
  context.assign("torch.reshape(" + context.input("self") + ", " + context.input("size") + ")");
}

// Refuses the only operator of PyTorch that opens files, and creates them if `shared` is true,
// because a model file is data.
void refuse_files(NodeContext& /*context*/) {
  throw Unsupported(
      "reads a file of the machine: read it in Python before the export, as a buffer of the model");
}

}  // namespace

std::span<const OperatorRule> tensor_rules() {
  static constexpr std::array kRules = std::to_array<OperatorRule>({
      {"aten.lift_fresh", copy_of_constant},
      {"aten.lift_fresh_copy", copy_of_constant},
      {"aten.bernoulli_", noise},
      {"aten.floor", noise},
      {"aten.floor_", noise},
      {"aten.view", view},
      {"aten.from_file", refuse_files},
  });
  return kRules;
}

}  // namespace decent::pt2
