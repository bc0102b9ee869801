#pragma once
// Finds the constant tensors of forward that must move to the model's device; internal to this
// room.

#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace decent {

/// The tensors, each once, that the graph of forward (see forward_graph()) holds as constants and
/// that are neither parameters nor buffers. Two kinds are left out, because they stay on the CPU
/// wherever the model is:
/// - integers and bools without dimensions that are only used in arithmetic: kernels take them as
///   arguments, and arithmetic on sizes, as torch.jit.trace records it, need not wait for a GPU;
/// - tensors that are only passed to arguments that PyTorch requires on the CPU (lengths of packed
///   sequences).
/// If a use is not known to accept a tensor on the CPU, the constant is in the result. The tensors
/// are the module's own, so that set_data on them changes what forward uses.
std::vector<at::Tensor> constants_to_move(const torch::jit::Graph& forward);

}  // namespace decent
