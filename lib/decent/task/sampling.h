#pragma once
// data.sampling: the weights by which the training data is drawn.

#include <memory>

#include "decent/config/recipe.h"
#include "decent/data/weighted_order.h"
#include "decent/task/sources.h"

namespace decent {

/// The order in which data.sampling draws the samples of `train`; null without data.sampling. Reads
/// the weights, or the targets, of all samples. Adds them to `train.content`, since workers with
/// other weights would take other samples. Throws UserError for a field that has no weights, naming
/// the first sample whose weight is none.
std::shared_ptr<const WeightedOrder> weighted_order(const Recipe& recipe, DataSet& train);

}  // namespace decent
