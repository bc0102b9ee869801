#pragma once
// metrics.jsonl: one JSON object a line, numbers in full precision, non-finite ones as null.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace decent {

struct TrainMetrics {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;  // of this step, mean over workers
  double lr = 0;
  // Means over the steps since the last such line, on rank 0:
  double samples_per_s = 0;  // of all workers together
  double step_ms = 0;        // per update, with waiting for data, without evaluation
  double comm_wait_ms = 0;
  double data_wait_ms = 0;
  std::optional<double> grad_norm = {};   // of this step, before clipping, mean over workers
  std::optional<double> loss_scale = {};  // that this step's loss was multiplied with, on rank 0
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
  /// Of an evaluation that is not the run's own, beside it in the same file: the data, where it is
  /// not the run's data.eval, and the checkpoint, where it is another run's.
  std::string source = {};
  std::string checkpoint = {};
};

/// Every line is with the operating system when a call returns. Throws WriteError.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& path);

  void write(const TrainMetrics& metrics);
  void write(const EvalMetrics& metrics);
  /// status: completed, stopped or failed.
  void write_end(const std::string& status, std::int64_t step, double wall_s);

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

/// Leaves the lines of steps up to `step` and no end line, as if the run had just come there. What
/// is no whole line (the program was killed while it wrote) goes too. Throws WriteError.
void cut_metrics(const std::filesystem::path& path, std::int64_t step);

/// The highest step of any line but end lines; 0 where there is none, or no such file.
std::int64_t last_step_in(const std::filesystem::path& path);

/// The losses of all train lines, in their order; NaN for one that was not finite.
std::vector<double> train_losses_in(const std::filesystem::path& path);

/// Whether the last line says that the run came to its end, and at which step; nothing where there
/// is no such file.
std::optional<std::int64_t> completed_step(const std::filesystem::path& path);

}  // namespace decent
