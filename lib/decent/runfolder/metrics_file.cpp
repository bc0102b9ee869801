#include "decent/runfolder/metrics_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;

struct Line {
  std::string kind;
  std::string status;  // of an end line
  std::int64_t step = 0;
  double loss = 0;  // NaN if it was not finite
  double wall_s = 0;
  bool stopped_early = false;
  bool is_added = false;  // an evaluation of other data or of another run's checkpoint
};

std::string text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  const bool is_number = found != object.end() && found->is_number();
  return is_number ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// Nothing if the text is no line of such a file.
std::optional<Line> read_line(std::string_view text) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto step = object.find("step");
  if (step == object.end() || !step->is_number_integer()) return std::nullopt;
  return Line{.kind = text_in(object, "kind"),
              .status = text_in(object, "status"),
              .step = step->get<std::int64_t>(),
              .loss = number_in(object, "loss"),
              .wall_s = number_in(object, "wall_s"),
              .stopped_early = object.value("stopped_early", Json()) == Json(true),
              .is_added = object.contains("source") || object.contains("checkpoint")};
}

// Names of files need not be UTF-8.
std::string text_of(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Visit>
void for_each_figure(const std::filesystem::path& path, const Visit& visit) {
  if (!std::filesystem::exists(path)) return;
  for_each_line(path, [&](std::string_view text, bool) {
    if (const auto line = read_line(text)) visit(*line, text);
  });
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path) : path_(path) {
  check_is_no_pipe(path);
  file_.reset(std::fopen(path.c_str(), "ae"));
  if (!file_) throw WriteError("cannot write '" + path.string() + "': " + std::strerror(errno));
}

void MetricsFile::write(const TrainMetrics& m) {
  Json line = {{"kind", "train"},
               {"step", m.step},
               {"epoch", m.epoch},
               {"loss", m.loss},
               {"loss_mean", m.loss_mean},
               {"lr", m.lr},
               {"samples_per_s", m.samples_per_s},
               {"step_ms", m.step_ms},
               {"comm_wait_ms", m.comm_wait_ms},
               {"data_wait_ms", m.data_wait_ms}};
  if (m.grad_norm) line["grad_norm"] = *m.grad_norm;
  if (m.loss_scale) line["loss_scale"] = *m.loss_scale;
  if (m.wrap_share) line["wrap_share"] = *m.wrap_share;
  if (m.gpu_memory_mb) line["gpu_memory_mb"] = *m.gpu_memory_mb;
  write_line(line.dump());
}

void MetricsFile::write(const EvalMetrics& m) {
  Json line = {{"kind", "eval"},
               {"step", m.step},
               {"epoch", m.epoch},
               {"model", "average"},
               {"loss", m.loss}};
  for (const Score& score : m.scores) line[score.name] = score.value;
  line["samples"] = m.samples;
  line["consensus_distance"] = m.consensus_distance;
  if (!m.source.empty()) line["source"] = m.source;
  if (!m.checkpoint.empty()) line["checkpoint"] = m.checkpoint;
  write_line(text_of(line));
}

void MetricsFile::write(const ResumeMetrics& m) {
  Json line = {{"kind", "resume"},
               {"step", m.step},
               {"workers", m.workers},
               {"before", m.before},
               {"lost", m.lost}};
  if (m.pause_s) line["pause_s"] = *m.pause_s;
  write_line(line.dump());
}

void MetricsFile::write(const EndMetrics& m) {
  Json line = {{"kind", "end"}, {"status", m.status}, {"step", m.step}, {"wall_s", m.wall_s}};
  if (m.stopped_early) line["stopped_early"] = true;
  write_line(line.dump());
}

void MetricsFile::sync() {
  if (::fsync(::fileno(file_.get())) == 0) return;
  throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

void MetricsFile::write_line(const std::string& line) { append(line + '\n'); }

// Lines written to a deleted file would be lost when it is closed.
void MetricsFile::append(std::string_view lines) {
  if (!stands_at(::fileno(file_.get()), path_)) {
    throw WriteError("'" + path_.string() +
                     "' is gone, or another file than the one that this run began to write: was "
                     "the output folder moved or deleted?");
  }
  const bool written = std::fwrite(lines.data(), 1, lines.size(), file_.get()) == lines.size() &&
                       std::fflush(file_.get()) == 0;
  if (!written) throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

void cut_metrics(const std::filesystem::path& path, const MetricsCut& cut) {
  if (!std::filesystem::exists(path)) return;
  const auto completion = completion_in(path);
  // Whether the next train line of the step was written only because the run ended.
  bool ended_between = completion && completion->step == cut.step && cut.step % cut.log_every != 0;
  std::string kept;
  for_each_figure(path, [&](const Line& line, std::string_view text) {
    if (line.kind == "end" || line.step > cut.step) return;
    const bool is_here = line.step == cut.step;
    if (line.kind == "resume" && is_here) return;
    const bool evaluates = line.kind == "eval" && is_here && !line.is_added;
    if (cut.evaluation_pending && evaluates) {
      ended_between = true;
    } else if (!(ended_between && is_here && line.kind == "train")) {
      kept += text;
      kept += '\n';
    }
  });
  write_file(path, kept);
}

std::int64_t last_step_in(const std::filesystem::path& path) {
  std::int64_t last = 0;
  for_each_figure(path, [&](const Line& line, std::string_view) {
    if (line.kind != "end") last = std::max(last, line.step);
  });
  return last;
}

std::vector<double> train_losses_in(const std::filesystem::path& path) {
  std::vector<double> losses;
  for_each_figure(path, [&](const Line& line, std::string_view) {
    if (line.kind == "train") losses.push_back(line.loss);
  });
  return losses;
}

std::optional<EndMetrics> completion_in(const std::filesystem::path& path) {
  std::optional<EndMetrics> completion;
  for_each_figure(path, [&](const Line& line, std::string_view) {
    // Evaluations of a run that is over may follow its end.
    if (line.kind == "eval") return;
    completion.reset();
    if (line.status != "completed") return;
    completion = EndMetrics{.status = line.status,
                            .step = line.step,
                            .wall_s = line.wall_s,
                            .stopped_early = line.stopped_early};
  });
  return completion;
}

}  // namespace decent
