#pragma once
// The lines that a run shows, as pure functions from figures to text.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decent/report/exchange_text.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/runfolder/run_file.h"
#include "decent/runfolder/run_folder.h"

namespace decent {

/// The highest learning rate of a schedule.
struct PeakLr {
  double value = 0;
  double given = 0;  // optimizer.lr, before it was scaled to the number of workers

  bool scaled() const { return value != given; }
};

/// What a run is about to do.
struct RunFacts {
  int workers = 1;
  std::string machine = {};  // rank 0's machine and processor; empty: not shown
  int threads = 1;           // of a worker, for computing on the CPU
  std::string device;        // with the backend of the exchange
  std::string parallel;      // how the workers train: "topology ring (2 phases)"
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t buckets = 0;
  std::int64_t train_samples = 0;
  std::optional<std::int64_t> eval_samples;
  std::int64_t steps = 0;
  std::vector<std::int64_t> batch_sizes = {};     // of each worker
  std::optional<std::int64_t> batch_tokens = {};  // if batches are measured in tokens
  std::int64_t updates_per_epoch = 0;
  SentFacts sent = {};
  std::string optimizer;
  PeakLr lr;
  std::string output;
};

/// "0.001", or "0.002 (0.001 x sqrt(4) workers)".
std::string lr_text(const PeakLr& lr, int workers);
/// "500 samples to train on, 100 samples to evaluate on".
std::string data_text(const RunFacts& run);
/// What a run says of itself, each with its word: {"workers", "2, 1 thread each, .."}.
Texts start_texts(const RunFacts& run);
std::vector<std::string> start_lines(const Texts& texts);
/// `parts`: groups of workers that never hear of one another.
std::string disconnected_warning(const std::vector<std::vector<int>>& parts);
/// `operators`: the operators of the model that do not change with train and eval mode.
std::string fixed_mode_warning(const std::string& model, const std::vector<std::string>& operators);
std::string progress_line(const TrainMetrics& metrics, std::int64_t total_steps);
std::string evaluation_line(const EvalMetrics& metrics, int workers);

/// The results of a completed run.
struct RunEnd {
  std::int64_t step = 0;
  std::string stopped_early = {};  // why; empty if the run did all its steps
  /// The model files: what each is, and its path, perhaps with remarks.
  std::vector<std::pair<std::string, std::string>> files = {};
};

/// The summary of a completed run.
struct Summary {
  int workers = 1;
  double wall_s = 0;
  std::int64_t samples = 0;  // trained on by all workers, counting repeats
  std::optional<TrainMetrics> train = {};
  std::optional<EvalMetrics> evaluation = {};
  RunEnd end = {};
  bool has_page = true;  // false: the report page could not be written
};

/// A small table of results, and the files that the run leaves in `folder`.
std::vector<std::string> end_lines(const RunFolder& folder, const Summary& summary);

/// "1:35", "1:01:01".
std::string duration_text(double seconds);
/// "1600 samples/s".
std::string speed_text(double samples_per_s);

}  // namespace decent
