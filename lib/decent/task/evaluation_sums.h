#pragma once
// The metrics of an evaluation, added up over batches and workers.

#include <cstddef>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/task/evaluated_batch.h"
#include "decent/task/metrics.h"

namespace decent {

class EvaluationSums {
 public:
  explicit EvaluationSums(std::vector<Metric> metrics);

  /// Adds a batch. The sums of kMaxUnread batches are read together from the model's device, so
  /// that the host seldom waits for a GPU.
  void add(const EvaluatedBatch& batch);

  /// Waits for all batches that were added.
  void read();

  /// Adds up the sums of all workers in the order of ranks, so that all have the same bits.
  /// Collective; a worker may have had no batch.
  void add_up_over(Communicator& communicator);

  /// The values of all metrics, in their order.
  std::vector<Score> scores();

  /// The sums of one metric.
  const std::vector<double>& sums_of(std::size_t metric) const { return sums_[metric]; }

 private:
  static constexpr std::size_t kMaxUnread = 64;  // batches that a GPU may be behind the host
  std::vector<std::size_t> agreed_sizes(Communicator& communicator) const;

  std::vector<Metric> metrics_;
  std::vector<std::vector<double>> sums_;       // by metric; empty before the first batch
  std::vector<std::vector<BatchSums>> unread_;  // by batch, then metric
};

}  // namespace decent
