#include "decent/train/backward.h"

#include <c10/util/Exception.h>

#include <string>

#include "decent/core/error.h"

namespace decent {
namespace {

// Autograd's own words for these cases speak of tensors that the user never sees.
UserError explain_backward(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (text.find("modified by an inplace operation") != std::string::npos) {
    return UserError(
        "the model needs a weight again after its gradient is complete: one that it also uses "
        "through detach() or "
        ".data.\nUpdating weights while backward runs would change that result, and updating them "
        "after it is not "
        "supported yet; use the weight itself, or a clone() of it.");
  }
  return UserError("the backward pass of the model fails: " + text.substr(0, text.find('\n')));
}

}  // namespace

void run_backward(const at::Tensor& loss) {
  try {
    loss.backward();
  } catch (const c10::Error& error) {
    throw explain_backward(error);
  }
}

}  // namespace decent
