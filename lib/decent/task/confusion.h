#pragma once
// How often a model takes one class for another.

#include "decent/task/metrics.h"

namespace decent {

/// With more classes than this (a vocabulary, for instance) there is no matrix.
constexpr std::int64_t kMostClassesOfMatrix = 1000;

/// Its sums are the matrix: for each true class how often each was predicted, row-major; no sums
/// for more classes than that. Its value means nothing. Recipes cannot name it.
Metric confusion_metric();

}  // namespace decent
