#pragma once
// The area under the ROC curve, exactly: a metric that keeps every score.

#include "decent/task/metrics.h"

namespace decent {

/// As scikit-learn's roc_auc_score with average="macro": for two classes the area of the second,
/// for more the mean over each class against the rest (multi_class="ovr"), for events the mean over
/// the last dimension. Classes and events that are always or never true do not count. NaN if none
/// counts, or if a score that counts is NaN.
Metric auc_metric();

}  // namespace decent
