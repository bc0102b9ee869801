#pragma once
// Which of the tensors that forward holds as constants move to the model's device; internal to this
// room.

#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace decent {

/// The tensors, each once, that the graph of forward (see forward_graph()) holds as constants,
/// which are neither parameters nor buffers, except those that stay on the CPU wherever the model
/// is:
/// - integers and bools without dimensions that are only computed with: a kernel takes them as
///   arguments, and arithmetic on sizes, as torch.jit.trace records it, does not wait for a GPU;
/// - what is only given to arguments that PyTorch wants on the CPU (lengths of packed sequences).
/// Where a use is not known to accept a tensor on the CPU, the constant moves. The tensors are the
/// module's own: what set_data makes of them is what forward uses.
std::vector<at::Tensor> constants_to_move(const torch::jit::Graph& forward);

}  // namespace decent
