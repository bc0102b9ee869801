#pragma once
// What a recipe says about the order of the training data: data.sampling, the weights by which it
// is drawn, and data.batch_tokens, batches of samples of similar lengths.

#include <memory>

#include "decent/config/recipe.h"
#include "decent/data/token_batches.h"
#include "decent/data/weighted_order.h"
#include "decent/task/sources.h"

namespace decent {

/// The order in which data.sampling draws the samples of `train`; null without data.sampling. Reads
/// the weights, or the targets, of all samples. Adds them to `train.content`, since workers with
/// other weights would take other samples. Throws UserError for a field that has no weights, naming
/// the first sample whose weight is none.
std::shared_ptr<const WeightedOrder> weighted_order(const Recipe& recipe, DataSet& train);

/// The batches of data.batch_tokens; null without it. Asks for the lengths of all samples of
/// `train`, and adds them to `train.content`, for the same reason. Throws UserError if samples have
/// no lengths of their own, and for a sample that is longer than a batch.
std::shared_ptr<const TokenBatches> token_batches(const Recipe& recipe, DataSet& train);

}  // namespace decent
