#pragma once
// Evaluation of the model as it stands, sharded over all workers: every sample exactly once.

#include <cstdint>
#include <memory>
#include <optional>

#include "decent/comm/communicator.h"
#include "decent/comm/world.h"
#include "decent/config/recipe.h"
#include "decent/data/batch.h"
#include "decent/model/torchscript_model.h"
#include "decent/report/metrics_file.h"
#include "decent/task/criterion.h"
#include "decent/task/evaluation_sums.h"
#include "decent/task/metrics.h"
#include "decent/task/sources.h"

namespace decent {

struct Evaluation {
  double loss = 0;            // mean over the elements that the loss averages over
  std::vector<Score> scores;  // eval.metrics
  std::int64_t samples = 0;
};

class Evaluator {
 public:
  /// `world` are the workers of `workers`. All references must outlive the evaluator.
  Evaluator(const Recipe& recipe, TorchScriptModel& model, const DataSet& data,
            std::span<const ForwardInput> inputs, std::shared_ptr<Communicator> world,
            World& workers);

  /// Evaluates in eval mode without gradients, and leaves the model in train mode. Collective; the
  /// same result on every worker. Buffers that the model itself changes while it runs stay changed.
  Evaluation evaluate(std::int64_t step);

 private:
  EvaluationSums evaluate_own_part();
  void evaluate(Batch read, EvaluationSums& sums);

  const Recipe& recipe_;
  TorchScriptModel& model_;
  const DataSet& data_;
  std::span<const ForwardInput> inputs_;
  std::shared_ptr<Communicator> world_;
  World& workers_;
  Criterion criterion_;
  std::vector<Metric> metrics_;  // the loss first
};

}  // namespace decent
