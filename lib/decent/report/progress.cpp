#include "decent/report/progress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "decent/core/text.h"
#include "decent/core/version.h"
#include "decent/report/dry_run_text.h"

namespace decent {
namespace {

std::string average_name(int workers) {
  return workers == 1 ? "model" : fmt::format("average of {} models", workers);
}

std::string score_text(const Score& score) {
  return score.is_share ? fmt::format("{} {:.2f}%  ", score.name, printable(100 * score.value))
                        : fmt::format("{} {:.4f}  ", score.name, printable(score.value));
}

std::string scores(const EvalMetrics& metrics) {
  std::string text;
  for (const Score& score : metrics.scores) text += score_text(score);
  return fmt::format("{}loss {:.4f}  on {}", text, printable(metrics.loss),
                     counted(metrics.samples, "sample"));
}

}  // namespace

std::string speed_text(double samples_per_s) {
  const std::string number = fmt::format("{:.0f}", samples_per_s);
  return number + (number == "1" ? " sample/s" : " samples/s");
}

std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  if (total >= 3600)
    return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}:{:02}", total / 60, total % 60);
}

std::string lr_text(const PeakLr& lr, int workers) {
  if (!lr.scaled()) return fmt::format("{:g}", lr.value);
  return fmt::format("{:g} ({:g} x sqrt({}) workers)", lr.value, lr.given, workers);
}

std::string data_text(const RunFacts& run) {
  return counted(run.train_samples, "sample") + " to train on, " +
         (run.eval_samples ? counted(*run.eval_samples, "sample") : "none") + " to evaluate on";
}

// "4 x 32 samples", "3 x 32 + 1 x 16 samples", "4 x 4096 tokens".
std::string batches_text(const RunFacts& run) {
  const std::vector<std::int64_t>& sizes = run.batch_sizes;
  if (run.batch_tokens)
    return fmt::format("{} x {}", sizes.size(), counted(*run.batch_tokens, "token"));
  std::vector<std::int64_t> different;
  for (const std::int64_t size : sizes)
    if (std::ranges::find(different, size) == different.end()) different.push_back(size);
  std::vector<std::string> texts;
  for (const std::int64_t size : different)
    texts.push_back(fmt::format("{} x {}", std::ranges::count(sizes, size), size));
  return join(texts, " + ") + (different == std::vector<std::int64_t>{1} ? " sample" : " samples");
}

Texts start_texts(const RunFacts& run) {
  Texts texts = {
      {"workers", fmt::format("{}, {}{}, {}", run.workers, counted(run.threads, "thread"),
                              run.workers > 1 ? " each" : "", run.parallel)},
      {"device", run.device}};
  if (!run.machine.empty()) texts.insert(texts.begin(), {"machine", run.machine});
  if (run.workers > 1)
    texts.emplace_back("exchange", method_text(run.sent) + ", sent: " + sent_text(run.sent));
  texts.emplace_back(
      "model", fmt::format("{}: {} to train in {}", run.model, counted(run.parameters, "parameter"),
                           counted(run.buckets, "bucket")));
  texts.emplace_back("data", data_text(run));
  texts.emplace_back("train",
                     fmt::format("{} of {}, {} an epoch, {} at lr {}", counted(run.steps, "update"),
                                 batches_text(run), run.updates_per_epoch, run.optimizer,
                                 lr_text(run.lr, run.workers)));
  texts.emplace_back("output", run.output);
  return texts;
}

std::vector<std::string> start_lines(const Texts& texts) {
  std::vector<std::string> lines = {"decent-train " + version_text()};
  for (const auto& [word, text] : texts) lines.push_back(fmt::format("{:<8} {}", word, text));
  return lines;
}

std::string disconnected_warning(const std::vector<std::vector<int>>& parts) {
  Phase groups;
  for (const std::vector<int>& ranks : parts) groups.push_back({ranks, 1.0});
  return "parallel.topology: the phases together do not connect all workers; " +
         phase_text(groups, 200) + " never hear of one another";
}

std::string fixed_mode_warning(const std::string& model,
                               const std::vector<std::string>& operators) {
  return "'" + model + "' has its train or eval mode baked in (" + join(operators) +
         "), as torch.jit.trace does: it behaves the same in training and in evaluation. "
         "torch.jit.script(model).save(..) keeps the two apart.";
}

std::string progress_line(const TrainMetrics& metrics, std::int64_t total_steps) {
  const double left = static_cast<double>(total_steps - metrics.step) * metrics.step_ms / 1e3;
  return fmt::format("step {:>{}}/{}  epoch {:.2f}  loss {:.4f}  lr {:.2e}  {}  left {}",
                     metrics.step, std::to_string(total_steps).size(), total_steps, metrics.epoch,
                     printable(metrics.loss), metrics.lr, speed_text(metrics.samples_per_s),
                     duration_text(left));
}

std::string evaluation_line(const EvalMetrics& metrics, int workers) {
  const std::string distance = workers == 1 ? ""
                                            : fmt::format("  consensus distance {:.3g}",
                                                          printable(metrics.consensus_distance));
  return fmt::format("eval at step {}: {}: {}{}", metrics.step, average_name(workers),
                     scores(metrics), distance);
}

std::vector<std::string> end_lines(const RunFolder& folder, const Summary& summary) {
  std::size_t width = 11;  // of the names of the table's rows
  for (const auto& [what, file] : summary.end.files) width = std::max(width, what.size());
  const auto row = [width](const std::string& label, const std::string& text) {
    return fmt::format("  {:<{}} {}", label, width, text);
  };
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("done: {} in {:.1f} s", counted(summary.end.step, "update"), summary.wall_s));
  if (!summary.end.stopped_early.empty())
    lines.push_back(row("stopped", "early: " + summary.end.stopped_early));
  if (summary.evaluation) {
    const EvalMetrics& evaluation = *summary.evaluation;
    lines.push_back(row(
        summary.workers == 1 ? "model" : "average",
        (summary.workers == 1 ? "" : average_name(summary.workers) + ": ") + scores(evaluation)));
    if (summary.workers > 1) {
      lines.push_back(row("apart", fmt::format("consensus distance {:.3g}",
                                               printable(evaluation.consensus_distance))));
    }
  }
  if (summary.train) {
    const TrainMetrics& train = *summary.train;
    lines.push_back(row("training", fmt::format("loss {:.4f} at step {}, epoch {:.2f}",
                                                printable(train.loss), train.step, train.epoch)));
    lines.push_back(
        row("an update", fmt::format("{:.2f} ms, of which {:.2f} waiting for peers and "
                                     "{:.2f} for data",
                                     train.step_ms, train.comm_wait_ms, train.data_wait_ms)));
  }
  const double speed = static_cast<double>(summary.samples) / std::max(summary.wall_s, 1e-9);
  lines.push_back(row("speed", speed_text(speed) + " overall"));
  for (const auto& [what, file] : summary.end.files) lines.push_back(row(what, file));
  lines.push_back(row("figures", folder.metrics().string()));
  if (summary.has_page) lines.push_back(row("page", folder.report().string()));
  return lines;
}

}  // namespace decent
