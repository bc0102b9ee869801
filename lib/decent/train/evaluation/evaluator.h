#pragma once
// Evaluates the current model on all workers together, every sample exactly once.

#include <cstdint>
#include <memory>
#include <optional>

#include "decent/comm/team.h"
#include "decent/data/device_batch.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/task/evaluation_sums.h"
#include "decent/task/metrics.h"
#include "decent/task/scalings.h"
#include "decent/task/task.h"

namespace decent {

struct Evaluation {
  double loss = 0;            // mean over the elements that the loss averages over
  std::vector<Score> scores;  // eval.metrics
  std::int64_t samples = 0;
  /// The confusion matrix, if asked for: [C, C]; empty if there are too many classes.
  std::vector<double> confusion = {};
};

enum class EvaluationDetail { scores, confusion };

class Evaluator {
 public:
  /// Evaluates `task` on its data.eval, which must exist. `task` must outlive the evaluator. A
  /// confusion matrix needs a loss of classes.
  Evaluator(Task& task, Team team, EvaluationDetail detail = EvaluationDetail::scores);

  /// Evaluates in eval mode without gradients, and leaves the model in train mode and all its
  /// tensors as they were. Collective; the same result on every worker. Nothing if the workers
  /// were asked to stop meanwhile: each of them then ends after its current batch, and no other
  /// step begins. Throws SharedError for an error on any worker.
  std::optional<Evaluation> evaluate(std::int64_t step);

 private:
  bool evaluate_parts(EvaluationSums& sums);
  bool evaluate_own_part(EvaluationSums& sums);
  void evaluate(const DeviceBatch& batch, EvaluationSums& sums);
  std::vector<Score> scores_of_speaker(EvaluationSums& sums);
  std::int64_t count_of_all();

  Task& task_;
  const Recipe& recipe_;
  Model& model_;
  const DataSet& data_;
  std::span<const ForwardInput> inputs_;
  const Criterion& criterion_;
  bool has_confusion_;
  std::vector<Metric> metrics_;                 // the loss first, the confusion matrix last
  std::vector<Normalization> target_scalings_;  // of a numeric target
  Team team_;
  std::int64_t evaluated_ = 0;  // samples of this worker's part
  std::int64_t step_ = 0;       // of the evaluation under way
};

}  // namespace decent
