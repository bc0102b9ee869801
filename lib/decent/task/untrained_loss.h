#pragma once
// What losses are worth that a model gives without having learned anything.

#include "decent/report/loss_watch.h"
#include "decent/task/predict.h"

namespace decent {

/// `prediction` is that for `batch` of `train`, before any training, `loss` its mean loss. Reads
/// further targets of `train` where the loss of zeros depends on them.
UntrainedLoss untrained_loss(const ModelRecipe& recipe, const DataSet& train, const Batch& batch,
                             const Prediction& prediction, double loss);

}  // namespace decent
