#pragma once
// The backward pass, with autograd's errors in words for the user.

#include <ATen/core/Tensor.h>

namespace decent {

/// loss.backward(). Throws UserError where autograd cannot differentiate the model, or where the
/// model needs a weight after it was updated; errors of hooks pass through.
void run_backward(const at::Tensor& loss);

}  // namespace decent
