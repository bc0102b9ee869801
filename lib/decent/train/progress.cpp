#include "decent/train/progress.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "decent/core/version.h"

namespace decent {
namespace {

std::string plural(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  if (total >= 3600)
    return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string average_name(int workers) {
  return workers == 1 ? "model" : fmt::format("average of {} models", workers);
}

std::string score_text(const Score& score) {
  const bool is_share = score.name == "accuracy" || score.name == "top5";
  return is_share ? fmt::format("{} {:.2f}%  ", score.name, 100 * score.value)
                  : fmt::format("{} {:.4f}  ", score.name, score.value);
}

std::string scores(const EvalMetrics& metrics) {
  std::string text;
  for (const Score& score : metrics.scores) text += score_text(score);
  return fmt::format("{}loss {:.4f}  on {}", text, metrics.loss, plural(metrics.samples, "sample"));
}

}  // namespace

std::vector<std::string> start_lines(const Plan& plan) {
  const std::string evaluated = plan.eval_samples
                                    ? plural(*plan.eval_samples, "sample") + " to evaluate on"
                                    : "none to evaluate on";
  return {
      fmt::format("decent-train {} (build {})", version(), build_id()),
      fmt::format("workers  {} on the CPU, topology {} ({})", plan.workers, plan.topology,
                  plural(plan.phases, "phase")),
      fmt::format("model    {}: {} to train in {}", plan.model,
                  plural(plan.parameters, "parameter"), plural(plan.buckets, "bucket")),
      fmt::format("data     {} to train on, {}", plural(plan.train_samples, "sample"), evaluated),
      fmt::format("train    {} of {} x {} samples, {} an epoch, {} at lr {:g}",
                  plural(plan.steps, "update"), plan.workers, plan.batch_size,
                  plan.updates_per_epoch, plan.optimizer, plan.lr),
      fmt::format("output   {}", plan.output)};
}

std::string progress_line(const TrainMetrics& metrics, std::int64_t total_steps) {
  const double left = static_cast<double>(total_steps - metrics.step) * metrics.step_ms / 1e3;
  return fmt::format(
      "step {:>{}}/{}  epoch {:.2f}  loss {:.4f}  lr {:.2e}  {:.0f} samples/s  left {}",
      metrics.step, std::to_string(total_steps).size(), total_steps, metrics.epoch, metrics.loss,
      metrics.lr, metrics.samples_per_s, duration_text(left));
}

std::string evaluation_line(const EvalMetrics& metrics, int workers) {
  const std::string distance =
      workers == 1 ? "" : fmt::format("  consensus distance {:.3g}", metrics.consensus_distance);
  return fmt::format("eval at step {}: {}: {}{}", metrics.step, average_name(workers),
                     scores(metrics), distance);
}

std::vector<std::string> end_lines(const RunFolder& folder,
                                   const std::optional<EvalMetrics>& evaluation, std::int64_t steps,
                                   int workers, double wall_s) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("done: {} in {:.1f} s", plural(steps, "update"), wall_s));
  if (evaluation)
    lines.push_back(fmt::format("{}: {}", average_name(workers), scores(*evaluation)));
  lines.push_back(
      fmt::format("  {}  TorchScript, eval mode: torch.jit.load", folder.model().string()));
  lines.push_back(fmt::format("  {}  its parameters and buffers", folder.weights().string()));
  lines.push_back(fmt::format("  {}  every figure of this run", folder.metrics().string()));
  return lines;
}

}  // namespace decent
