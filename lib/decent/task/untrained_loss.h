#pragma once
// Losses of a model that has not learned anything.

#include "decent/task/loss_watch.h"
#include "decent/task/passes.h"

namespace decent {

/// `prediction` is the model's for `batch` of `train` before any training, and `loss` its mean
/// loss. Reads further targets of `train` if the loss of zeros depends on them.
UntrainedLoss untrained_loss(const ModelRecipe& recipe, const DataSet& train, const Batch& batch,
                             const Prediction& prediction, double loss);

}  // namespace decent
