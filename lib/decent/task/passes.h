#pragma once
// A batch through the model, up to the loss, and the way back; errors in words for the user.

#include <span>

#include "decent/core/error.h"
#include "decent/data/device_batch.h"
#include "decent/model/model.h"
#include "decent/task/criterion.h"
#include "decent/task/sources.h"

namespace decent {

/// Both are on the model's device. The target is undefined if the data has none.
struct Prediction {
  at::Tensor output;
  at::Tensor target;
};

/// Runs forward on a batch of `data`. Throws UserError if that fails. On a GPU, also if the target
/// has a class that the output does not have, before a kernel meets it.
Prediction predict(Model& model, std::span<const ForwardInput> inputs, const Criterion& criterion,
                   const DataSet& data, const DeviceBatch& batch);
/// The same for a batch that is still on its way to the model's device.
Prediction predict(Model& model, std::span<const ForwardInput> inputs, const Criterion& criterion,
                   const DataSet& data, const Batch& batch);

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
