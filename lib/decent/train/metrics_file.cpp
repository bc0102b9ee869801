#include "decent/train/metrics_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : path_(path), file_(std::fopen(path.c_str(), "ae")) {
  if (!file_) throw WriteError("cannot write '" + path.string() + "': " + std::strerror(errno));
}

void MetricsFile::write(const TrainMetrics& m) {
  Json line = {{"kind", "train"},
               {"step", m.step},
               {"epoch", m.epoch},
               {"loss", m.loss},
               {"lr", m.lr},
               {"samples_per_s", m.samples_per_s},
               {"step_ms", m.step_ms},
               {"comm_wait_ms", m.comm_wait_ms},
               {"data_wait_ms", m.data_wait_ms}};
  if (m.grad_norm) line["grad_norm"] = *m.grad_norm;
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
  write_line(line.dump());
}

void MetricsFile::write_end(const std::string& status, std::int64_t step, double wall_s) {
  write_line(
      Json({{"kind", "end"}, {"status", status}, {"step", step}, {"wall_s", wall_s}}).dump());
}

void MetricsFile::sync() {
  if (::fsync(::fileno(file_.get())) == 0) return;
  throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

void MetricsFile::write_line(const std::string& line) {
  const bool written =
      std::fprintf(file_.get(), "%s\n", line.c_str()) >= 0 && std::fflush(file_.get()) == 0;
  if (!written) throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

void cut_metrics(const std::filesystem::path& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return;
  std::istringstream all(read_text(path));
  std::string kept;
  for (std::string line; std::getline(all, line);) {
    const Json entry = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object() || entry.value("kind", "") == "end") continue;
    if (entry.value("step", std::int64_t{0}) <= step) kept += line + "\n";
  }
  write_file(path, kept);
}

std::optional<std::int64_t> completed_step(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::istringstream all(read_text(path));
  std::optional<std::int64_t> completed;
  for (std::string line; std::getline(all, line);) {
    const Json entry = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object()) continue;
    // Evaluations of a run that is over may follow its end.
    if (entry.value("kind", "") == "end") {
      completed = std::nullopt;
      if (entry.value("status", "") == "completed") {
        completed = entry.value("step", std::int64_t{0});
      }
    } else if (entry.value("kind", "") == "train") {
      completed = std::nullopt;
    }
  }
  return completed;
}

}  // namespace decent
