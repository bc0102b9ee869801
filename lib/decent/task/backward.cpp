#include "decent/task/backward.h"

#include <c10/util/Exception.h>

#include <string>

#include "decent/core/gpu_errors.h"
#include "decent/model/reason.h"

namespace decent {

void run_backward(const at::Tensor& loss) {
  try {
    loss.backward();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    // Autograd's own words for this case speak of tensors that the user never sees.
    if (text.find("modified by an inplace operation") != std::string::npos) {
      throw WeightNeededLater(
          "the model needs a weight again after its gradient is complete, as it also uses it "
          "through detach(), but "
          "did not in the first batch.\nUpdating weights while backward runs would change the "
          "result; use "
          "weight.detach().clone() in the model.");
    }
    const std::string message = "the backward pass of the model fails: " + reason_of(error);
    if (const auto known = gpu_error_of(text)) known->raise(message);
    throw UserError(message);
  }
}

}  // namespace decent
