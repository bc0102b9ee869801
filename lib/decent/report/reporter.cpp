#include "decent/report/reporter.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/report/page/page.h"

namespace decent {
namespace {

using Clock = std::chrono::steady_clock;
using Scalars = std::vector<std::pair<std::string, double>>;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

Scalars scalars_of(const TrainMetrics& m) {
  Scalars scalars = {{"train/epoch", m.epoch},
                     {"train/loss", m.loss},
                     {"train/loss_mean", m.loss_mean},
                     {"train/lr", m.lr},
                     {"train/samples_per_s", m.samples_per_s},
                     {"train/step_ms", m.step_ms},
                     {"train/comm_wait_ms", m.comm_wait_ms},
                     {"train/data_wait_ms", m.data_wait_ms}};
  if (m.grad_norm) scalars.emplace_back("train/grad_norm", *m.grad_norm);
  if (m.loss_scale) scalars.emplace_back("train/loss_scale", *m.loss_scale);
  if (m.wrap_share) scalars.emplace_back("train/wrap_share", *m.wrap_share);
  if (m.gpu_memory_mb) scalars.emplace_back("train/gpu_memory_mb", *m.gpu_memory_mb);
  return scalars;
}

Scalars scalars_of(const EvalMetrics& m) {
  Scalars scalars = {{"eval/epoch", m.epoch}, {"eval/loss", m.loss}};
  for (const Score& score : m.scores) scalars.emplace_back("eval/" + score.name, score.value);
  scalars.emplace_back("eval/consensus_distance", m.consensus_distance);
  return scalars;
}

std::optional<double> accuracy_of(const std::optional<EvalMetrics>& evaluation) {
  if (!evaluation) return std::nullopt;
  for (const Score& score : evaluation->scores) {
    if (score.name == "accuracy") return score.value;
  }
  return std::nullopt;
}

}  // namespace

Reporter::Reporter(const RunFolder& folder, Log& log, const ReporterOptions& options)
    : folder_(folder), log_(log), options_(options), metrics_(folder.metrics()) {
  measured_step_ = options.first_step;
  if (options.tensorboard) {
    events_.emplace(folder.path());
    // An evaluation at the start of a new run has step 0.
    events_->write_start(options.first_step > 0 ? options.first_step + 1 : 0);
  }
  if (options.display != ProgressDisplay::bar) return;
  bar_ = std::make_unique<ProgressBar>();
  log_.before_line([this] { bar_->clear(); });
}

Reporter::~Reporter() {
  if (bar_) log_.before_line(nullptr);
}

double Reporter::wall_s() const { return seconds_between(started_, Clock::now()); }

// The more lines a run has, the longer a page takes. So not every evaluation writes one: pages take
// at most a fiftieth of the time. Other files have all that a page shows, so a failure to write it
// (a limit on file sizes) does not end the run.
void Reporter::write_page(bool running) {
  if (!has_pages_) return;
  const auto begin = Clock::now();
  try {
    write_report(folder_, running);
  } catch (const std::exception& error) {
    has_pages_ = false;
    log_.warn("there is no page of this run: " + std::string(error.what()));
  }
  const auto end = Clock::now();
  next_page_ = end + std::max<Clock::duration>(std::chrono::seconds(2), 50 * (end - begin));
}

void Reporter::resume(const ResumeMetrics& metrics) {
  const std::lock_guard lock(mutex_);
  metrics_.write(metrics);
}

void Reporter::step(std::int64_t step, double epoch) {
  if (!bar_) return;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const double seconds = seconds_between(measured_at_, now);
  if (seconds > 0.2) {
    const double rate = static_cast<double>(step - measured_step_) / seconds;
    steps_per_s_ = steps_per_s_ == 0 ? rate : 0.8 * steps_per_s_ + 0.2 * rate;
    measured_at_ = now;
    measured_step_ = step;
  }
  const auto left = static_cast<double>(options_.total_steps - step);
  bar_->update({.step = step,
                .total_steps = options_.total_steps,
                .epoch = epoch,
                .samples_per_s = steps_per_s_ * options_.update_samples,
                .seconds_left = steps_per_s_ > 0 ? left / steps_per_s_ : 0,
                .loss = last_train_ ? std::optional(last_train_->loss) : std::nullopt,
                .accuracy = accuracy_of(last_evaluation_)});
}

void Reporter::train(const TrainMetrics& metrics) {
  const std::lock_guard lock(mutex_);
  last_train_ = metrics;
  metrics_.write(metrics);
  if (events_) events_->write(metrics.step, scalars_of(metrics));
  const std::string line = progress_line(metrics, options_.total_steps);
  if (options_.display == ProgressDisplay::plain) {
    log_.info(line);
  } else {
    log_.file_only(line);
  }
}

void Reporter::evaluation(const EvalMetrics& metrics) {
  const std::lock_guard lock(mutex_);
  last_evaluation_ = metrics;
  metrics_.write(metrics);
  if (events_) events_->write(metrics.step, scalars_of(metrics));
  log_.info(evaluation_line(metrics, options_.workers));
  if (Clock::now() >= next_page_) write_page(/*running=*/true);
}

void Reporter::end(const std::string& status, std::int64_t step,
                   const std::string& error) noexcept {
  try {
    const std::unique_lock lock(mutex_, std::chrono::seconds(1));
    if (!lock.owns_lock()) return;
    if (bar_) bar_->clear();
    metrics_.write(EndMetrics{.status = status, .step = step, .wall_s = wall_s()});
    // The training thread may be using the log object itself.
    if (!error.empty()) append_error(folder_.log(), error);
    if (has_pages_) write_report(folder_, /*running=*/false);
  } catch (const std::exception&) {
    // This disk may be the failure that is being reported: a warning about the page adds nothing.
  }
}

// The reporter may have been lost in the middle of a line.
void end_for_lost_reporter(const RunFolder& folder, const EndMetrics& end, std::int64_t log_every,
                           const std::string& error) noexcept {
  try {
    cut_metrics(folder.metrics(), {.step = end.step, .log_every = log_every});
    MetricsFile(folder.metrics()).write(end);
    append_error(folder.log(), error);
    write_report(folder, /*running=*/false);
  } catch (const std::exception&) {
    // As in Reporter::end.
  }
}

void Reporter::complete(const RunEnd& end) {
  const std::lock_guard lock(mutex_);
  if (bar_) bar_->clear();
  metrics_.write(EndMetrics{.status = "completed",
                            .step = end.step,
                            .wall_s = wall_s(),
                            .stopped_early = !end.stopped_early.empty()});
  write_page(/*running=*/false);
  const Summary summary{
      .workers = options_.workers,
      .wall_s = wall_s(),
      .samples = std::llround(static_cast<double>(end.step - options_.first_step) *
                              options_.update_samples),
      .train = last_train_,
      .evaluation = last_evaluation_,
      .end = end,
      .has_page = has_pages_};
  for (const std::string& line : end_lines(folder_, summary)) log_.info(line);
}

}  // namespace decent
