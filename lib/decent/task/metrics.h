#pragma once
// eval.metrics: which there are for a loss, and their values.

#include <string>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/report/metrics_file.h"
#include "decent/task/criterion.h"

namespace decent {

/// The metrics of eval.metrics besides the loss, which is always measured; without eval.metrics
/// accuracy for losses that classify. Throws UserError for one that the loss does not have, saying
/// which it has.
///
///   accuracy    share of right predictions: the highest class; for bce_with_logits the sign
///   top5        share of targets among the five highest classes
///   perplexity  exp of the loss: cross_entropy, nll, output
///   mse, mae    mean squared and absolute error: mse, l1, huber
///   r2          1 - sum (y - f)^2 / sum (y - mean y)^2, over all numbers of all targets
std::vector<std::string> metrics_of(const Recipe& recipe);

/// Their values, in that order.
std::vector<Score> scores_of(const std::vector<std::string>& metrics, const EvaluationSums& sums);

}  // namespace decent
