#pragma once
// An evaluation of the average of all copies in the middle of training.

#include <optional>

#include "decent/checkpoint/manifest.h"
#include "decent/parallel/trained_parameters.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/train/evaluation/evaluator.h"

namespace decent {

/// Evaluates the average over all workers of their weights, or of the moving averages of their
/// weights, and leaves every worker with its own weights again, also after a SharedError. Nothing
/// if the workers were asked to stop meanwhile. Collective. Throws as Evaluator::evaluate does.
std::optional<EvalMetrics> evaluate_average(TrainedParameters& parameters, Evaluator& evaluator,
                                            double epoch);

/// The figures of an evaluation as a checkpoint keeps them.
Numbers figures_of(const EvalMetrics& evaluation);

}  // namespace decent
