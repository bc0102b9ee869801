#pragma once
// Tensors that were written as numbers in Python code, in a traced model; internal to this room.

#include <torch/csrc/jit/api/module.h>

namespace decent {

/// torch.jit.trace records torch.tensor([1., 2.]) as a constant and aten::to(constant, "cpu", ..),
/// with the device that it was traced on. This removes the device from such calls, so that the
/// constant stays on the model's device. Must be called before forward runs.
void let_literals_follow(const torch::jit::Module& module);

}  // namespace decent
