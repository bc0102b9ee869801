#pragma once
// metrics.jsonl: one JSON object per line, numbers in full precision, non-finite ones as null.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

struct TrainMetrics {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;       // of this step, mean over workers
  double loss_mean = 0;  // of the steps since the last such line, mean over workers
  double lr = 0;
  // Means over the steps since the last such line, on rank 0:
  double samples_per_s = 0;  // of all workers together
  double step_ms = 0;        // per update, with waiting for data, without evaluation and saving
  double comm_wait_ms = 0;
  double data_wait_ms = 0;
  std::optional<double> grad_norm = {};   // of this step, before clipping, mean over workers
  std::optional<double> loss_scale = {};  // factor of this step's loss, on rank 0
  /// Of this step, mean over the workers that have one; see DecentralizedParameters::wrap_share.
  std::optional<double> wrap_share = {};
  /// MiB: the most that tensors took of rank 0's GPU since the last such line.
  std::optional<double> gpu_memory_mb = {};
};

/// A metric of an evaluation besides the loss.
struct Score {
  std::string name;  // as in eval.metrics
  double value = 0;
  bool is_share = false;  // from 0 to 1, shown in percent
  bool operator==(const Score&) const = default;
};

struct EvalMetrics {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  std::vector<Score> scores = {};
  std::int64_t samples = 0;
  double consensus_distance = 0;
  /// For an evaluation that is not the run's own but is added to its file: the data, if it is not
  /// the run's data.eval, and the checkpoint, if it is another run's. Else empty.
  std::string source = {};
  std::string checkpoint = {};
};

/// A resume with other workers than those that trained until then.
struct ResumeMetrics {
  std::int64_t step = 0;       // after which the run goes on
  int workers = 1;             // from then on
  std::int64_t before = 1;     // until then, with those that were lost
  std::vector<int> lost = {};  // the ranks of workers that were lost in that step
  /// Since the first of them was lost; nothing if none was, or if it is not known.
  std::optional<double> pause_s = {};
};

struct EndMetrics {
  std::string status;  // completed, stopped or failed
  std::int64_t step = 0;
  double wall_s = 0;
  bool stopped_early = false;  // completed because of train.stop
};

/// When a call returns, its line has been passed to the operating system. Throws WriteError.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& path);

  void write(const TrainMetrics& metrics);
  void write(const EvalMetrics& metrics);
  void write(const ResumeMetrics& metrics);
  void write(const EndMetrics& metrics);
  /// Whole lines that are printed already.
  void append(std::string_view lines);

  /// Makes all lines durable (fsync). Any thread.
  void sync();

 private:
  void write_line(const std::string& line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// Where a run resumes.
struct MetricsCut {
  std::int64_t step = 0;
  std::int64_t log_every = 1;       // the interval of train lines, in steps
  bool evaluation_pending = false;  // the run resumes with the evaluation of `step`
};

/// Keeps the lines of steps up to `cut.step`, as if the run had just done that step. Removes end
/// lines, a resume line of that step, because the run resumes there anew, and a train line that was
/// written only because the run completed with that step. If the evaluation is pending, also
/// removes its line and the train line after it. Removes an incomplete last line, too (the program
/// was killed while it wrote). Throws WriteError.
void cut_metrics(const std::filesystem::path& path, const MetricsCut& cut);

/// The highest step of all lines except end lines; 0 if there is none, or no such file.
std::int64_t last_step_in(const std::filesystem::path& path);

/// The losses of all train lines in order; NaN for losses that were not finite.
std::vector<double> train_losses_in(const std::filesystem::path& path);

/// How the run completed, if the last line says that it did; nullopt otherwise, or if there is no
/// such file.
std::optional<EndMetrics> completion_in(const std::filesystem::path& path);

}  // namespace decent
