#pragma once
// Which classes a model takes for which others.

#include "decent/task/metrics.h"

namespace decent {

/// With more classes, as of a vocabulary, there is no matrix.
constexpr std::int64_t kMostClassesOfMatrix = 1000;

/// Its sums are the matrix: for each true class how often each was predicted, row-major; none for
/// more classes than that. Its value says nothing. Not one that recipes name.
Metric confusion_metric();

}  // namespace decent
