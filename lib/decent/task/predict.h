#pragma once
// A batch through the model, up to the loss.

#include <span>

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

}  // namespace decent
