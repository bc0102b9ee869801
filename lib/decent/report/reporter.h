#pragma once
// Reports a run's progress to metrics.jsonl, report.html, TensorBoard, the screen and
// run.log. Rank 0 has one.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "decent/report/event_file.h"
#include "decent/report/progress.h"
#include "decent/report/progress_bar.h"
#include "decent/runfolder/log.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/runfolder/run_folder.h"

namespace decent {

enum class ProgressDisplay { bar, plain, off };

struct ReporterOptions {
  int workers = 1;
  std::int64_t first_step = 0;  // the step that the run resumes after; 0: a new run
  std::int64_t total_steps = 0;
  double update_samples = 0;  // of one update, on all workers; on average
  ProgressDisplay display = ProgressDisplay::plain;
  bool tensorboard = true;
};

/// Threads: end() and sync() may be called by any thread, the others by the training thread.
class Reporter {
 public:
  /// `folder` exists; `log` must outlive the reporter. Throws WriteError, as do the other methods.
  Reporter(const RunFolder& folder, Log& log, const ReporterOptions& options);
  ~Reporter();

  /// Writes the line about other workers, before any line of a later step.
  void resume(const ResumeMetrics& metrics);
  /// Called after every update; cheap.
  void step(std::int64_t step, double epoch);
  void train(const TrainMetrics& metrics);
  void evaluation(const EvalMetrics& metrics);
  /// Makes the lines of metrics.jsonl durable. Any thread.
  void sync() { metrics_.sync(); }
  /// Writes the last line of metrics.jsonl (completed, stopped or failed), and `error` into run.log
  /// if it is not empty, and clears the display. Never throws and never waits long, because the
  /// disk may have failed and the training thread may hang.
  void end(const std::string& status, std::int64_t step, const std::string& error) noexcept;
  /// Ends a run that completed, and shows its summary. Throws WriteError.
  void complete(const RunEnd& end);

 private:
  double wall_s() const;
  void write_page(bool running);

  const RunFolder folder_;
  Log& log_;
  ReporterOptions options_;
  std::timed_mutex mutex_;
  MetricsFile metrics_;
  std::optional<EventFile> events_;
  std::unique_ptr<ProgressBar> bar_;  // null: no bar
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<TrainMetrics> last_train_;
  std::optional<EvalMetrics> last_evaluation_;
  bool has_pages_ = true;
  std::chrono::steady_clock::time_point next_page_ = started_;  // earliest next page while running
  // Speed as the bar shows it, smoothed over about a second.
  std::chrono::steady_clock::time_point measured_at_ = started_;
  std::int64_t measured_step_ = 0;
  double steps_per_s_ = 0;
};

/// Ends the files of a run whose reporter was lost after step `step`, as Reporter::end("failed")
/// does. `log_every`: see MetricsCut.
void end_for_lost_reporter(const RunFolder& folder, const EndMetrics& end, std::int64_t log_every,
                           const std::string& error) noexcept;

}  // namespace decent
