#pragma once
// The backward pass, with autograd's errors in words for the user.

#include <ATen/core/Tensor.h>

#include "decent/core/error.h"

namespace decent {

/// The model needs a weight again after its gradient is complete, because it also uses the weight
/// through detach(). An update in backward would change the result.
class WeightNeededLater : public UserError {
 public:
  using UserError::UserError;
};

/// loss.backward(). Throws WeightNeededLater if autograd still needs a weight that has changed,
/// UserError if it cannot differentiate the model; errors of hooks pass through.
void run_backward(const at::Tensor& loss);

}  // namespace decent
