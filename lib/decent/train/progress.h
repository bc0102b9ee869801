#pragma once
// The lines that a run shows: pure functions from figures to text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/train/metrics_file.h"
#include "decent/train/run_folder.h"

namespace decent {

/// What a run is about to do.
struct Plan {
  int workers = 1;
  std::string topology;
  std::int64_t phases = 0;
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t buckets = 0;
  std::int64_t train_samples = 0;
  std::optional<std::int64_t> eval_samples;
  std::int64_t steps = 0;
  std::int64_t batch_size = 0;
  std::int64_t updates_per_epoch = 0;
  std::string optimizer;
  double lr = 0;
  std::string output;
};

std::vector<std::string> start_lines(const Plan& plan);
std::string progress_line(const TrainMetrics& metrics, std::int64_t total_steps);
std::string evaluation_line(const EvalMetrics& metrics, int workers);
std::vector<std::string> end_lines(const RunFolder& folder,
                                   const std::optional<EvalMetrics>& evaluation, std::int64_t steps,
                                   int workers, double wall_s);

}  // namespace decent
