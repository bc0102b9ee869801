#include "decent/train/evaluation/evaluated_average.h"

#include "decent/comm/lost_workers.h"
#include "decent/core/error.h"

namespace decent {
namespace {

std::optional<Evaluation> evaluate_and_revert(TrainedParameters& parameters, Evaluator& evaluator) {
  try {
    if (parameters.has_ema()) parameters.use_ema();
    const std::optional<Evaluation> evaluation = evaluator.evaluate(parameters.step());
    parameters.revert_global_avg();
    return evaluation;
  } catch (const SharedError&) {  // the workers will save their own weights
    parameters.revert_global_avg();
    throw;
  } catch (const GivenUp&) {
    parameters.revert_global_avg();
    throw;
  }
}

}  // namespace

std::optional<EvalMetrics> evaluate_average(TrainedParameters& parameters, Evaluator& evaluator,
                                            double epoch) {
  const std::optional<double> distance =
      parameters.global_avg(/*will_revert=*/true, /*return_distance=*/true);
  const std::optional<Evaluation> evaluation = evaluate_and_revert(parameters, evaluator);
  if (!evaluation) return std::nullopt;
  return EvalMetrics{.step = parameters.step(),
                     .epoch = epoch,
                     .loss = evaluation->loss,
                     .scores = evaluation->scores,
                     .samples = evaluation->samples,
                     .consensus_distance = distance.value()};
}

Numbers figures_of(const EvalMetrics& evaluation) {
  Numbers figures = {{"loss", evaluation.loss}};
  for (const Score& score : evaluation.scores) figures.emplace_back(score.name, score.value);
  return figures;
}

}  // namespace decent
