#pragma once
// An evaluation in the middle of training: of the average of all copies.

#include <optional>

#include "decent/checkpoint/manifest.h"
#include "decent/parallel/trained_parameters.h"
#include "decent/report/metrics_file.h"
#include "decent/train/evaluation/evaluator.h"

namespace decent {

/// Evaluates the average over all workers of their weights, or of the moving averages of those, and
/// leaves every worker with its own again, also after a SharedError. Nothing where the workers were
/// asked to stop meanwhile. Collective. Throws as Evaluator::evaluate does.
std::optional<EvalMetrics> evaluate_average(TrainedParameters& parameters, Evaluator& evaluator,
                                            double epoch);

/// As a checkpoint keeps them.
Numbers figures_of(const EvalMetrics& evaluation);

}  // namespace decent
