#include "decent/task/passes.h"

#include <c10/util/Exception.h>

#include <string>

#include "decent/core/gpu_errors.h"
#include "decent/model/reason.h"

namespace decent {

Prediction predict(Model& model, std::span<const ForwardInput> inputs, const Criterion& criterion,
                   const DataSet& data, const DeviceBatch& batch) {
  const Batch& moved = batch.there();
  const at::Tensor output = model.forward(inputs, std::span(moved.fields).first(inputs.size()));
  // The host checks while the GPU computes: a wrong class in a kernel makes the GPU unusable.
  if (!model.device().is_cpu() && data.has_target)
    criterion.check_classes(output, data.target_in(batch.read().fields));
  return {.output = output, .target = data.target_in(moved.fields)};
}

Prediction predict(Model& model, std::span<const ForwardInput> inputs, const Criterion& criterion,
                   const DataSet& data, const Batch& batch) {
  return predict(model, inputs, criterion, data, DeviceBatch(batch, model.device()));
}

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
