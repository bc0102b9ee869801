#include "decent/train/metrics_file.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "decent/core/error.h"

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

void MetricsFile::write_line(const std::string& line) {
  const bool written =
      std::fprintf(file_.get(), "%s\n", line.c_str()) >= 0 && std::fflush(file_.get()) == 0;
  if (!written) throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

}  // namespace decent
