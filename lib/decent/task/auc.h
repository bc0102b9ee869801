#pragma once
// The area under the ROC curve, exactly: a metric that keeps every score.

#include "decent/task/metrics.h"

namespace decent {

/// As scikit-learn's roc_auc_score with average="macro": of two classes that of the second, of more
/// the mean over each against the rest (multi_class="ovr"), of events over those in the last
/// dimension. Classes and events that are always or never true do not count; NaN where none counts,
/// and where a score that counts is NaN.
Metric auc_metric();

}  // namespace decent
