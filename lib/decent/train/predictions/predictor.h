#pragma once
// Runs the current model on all of data.predict, shared out among the workers.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/team.h"
#include "decent/data/prefetcher.h"
#include "decent/report/predictions/prediction_file.h"
#include "decent/task/predicted.h"
#include "decent/task/task.h"

namespace decent {

/// The numbers of a batch's predictions that workers send; the elements follow as one tensor.
struct PredictionHeader {
  std::vector<std::int64_t> shape = {};        // of the output; empty: there are no samples
  std::vector<std::int64_t> class_shape = {};  // empty: no classes
  std::vector<std::int64_t> left_out = {};     // numbers of the batch's samples without prediction
};

/// Filled only on the worker that speaks.
struct PredictionCounts {
  std::int64_t samples = 0;
  /// How many samples are of each class; empty if a sample does not have one class.
  std::map<std::int64_t, std::int64_t> of_classes = {};
  std::int64_t not_finite = 0;  // samples whose output holds a NaN or an infinity
  std::int64_t first_not_finite = 0;
};

class Predictor {
 public:
  /// `task` has data.predict and must outlive the predictor. `are_probabilities`: see OutputReader;
  /// whether a written model's output are probabilities.
  Predictor(Task& task, Team team, bool are_probabilities);

  /// Predicts every sample once, in eval mode and without gradients, and leaves the model in train
  /// mode. Batches are the same on any number of workers, and their predictions are written in the
  /// order of the data; `file` is null except on the worker that speaks. No more than one batch of
  /// each worker is in memory. Collective. Throws SharedError.
  PredictionCounts run(PredictionFile* file);

 private:
  struct OwnBatch;

  OwnBatch predict(std::int64_t number, Batch read);
  std::vector<std::int64_t> samples_of(std::int64_t number) const;
  void run_round(std::int64_t first, Prefetcher& batches, PredictionFile* file);
  void send(const Predicted& predicted);
  std::vector<std::optional<Predicted>> receive(const std::vector<PredictionHeader>& headers);
  void count_not_finite(const at::Tensor& output, const std::vector<std::int64_t>& rows);
  void write(std::int64_t number, const std::vector<std::int64_t>& left_out,
             const Predicted& predicted, PredictionFile& file);

  Task& task_;
  const DataSet& data_;
  OutputReader reader_;
  Team team_;
  std::int64_t batch_size_;
  std::int64_t batch_count_;
  PredictionCounts counts_;
  std::exception_ptr failed_write_;  // kept until it can be shared with all workers
};

}  // namespace decent
