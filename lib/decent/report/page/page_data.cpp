#include "decent/report/page/page_data.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/report/class_table.h"
#include "decent/report/page/metrics_table.h"
#include "decent/report/page/recipe_rows.h"
#include "decent/report/page/run_log.h"
#include "decent/report/page/topology_picture.h"
#include "decent/runfolder/output_lock.h"
#include "decent/runfolder/run_file.h"
#include "decent/topology/analysis.h"

namespace decent {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kMostWorkers = 4096;  // for which a topology is computed

// In ASCII and without "<", so that no value can end a <script> element. File names need not be
// UTF-8.
std::string script_text(const Json& value) {
  const std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

// The shortest decimal that reads back to the same bits.
void append_number(double number, std::string& text) {
  if (!std::isfinite(number)) {
    text += "null";
    return;
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  text.append(buffer.data(), end);
}

// Written by hand: a JSON library would take several times the time and memory.
std::string columns_text(const MetricsColumns& columns) {
  std::string text = "{";
  for (const auto& [name, values] : columns.all()) {
    text += (text.size() > 1 ? "," : "") + script_text(name) + ":[";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text += ',';
      append_number(values[i], text);
    }
    text += ']';
  }
  return text + "}";
}

Json figures_json(const std::vector<std::pair<std::string, double>>& figures) {
  Json all = Json::object();
  for (const auto& [name, value] : figures) all[name] = value;
  return all;
}

Json later_json(const MetricsTable& metrics) {
  Json all = Json::array();
  for (const LaterEvaluation& each : metrics.later) {
    all.push_back({{"figures", figures_json(each.figures)},
                   {"source", each.source},
                   {"checkpoint", each.checkpoint}});
  }
  return all;
}

Json resumes_json(const MetricsTable& metrics) {
  Json all = Json::array();
  for (const WrittenResume& each : metrics.resumes) {
    all.push_back({{"step", each.step},
                   {"workers", each.workers},
                   {"before", each.before},
                   {"lost", each.lost},
                   {"pause_s", each.pause_s}});
  }
  return all;
}

Json recipe_json(const RunRecipe& recipe, const Texts& defaults) {
  Json rows = Json::array();
  for (const RecipeRow& row : recipe.rows(defaults)) {
    rows.push_back({{"key", row.key},
                    {"value", row.value},
                    {"default", row.fallback},
                    {"differs", row.differs}});
  }
  return rows;
}

Json warnings_json(const std::vector<LogMessage>& warnings) {
  Json all = Json::array();
  for (const LogMessage& each : warnings) all.push_back({{"time", each.time}, {"text", each.text}});
  return all;
}

Json starts_json(const std::vector<StartEntry>& starts) {
  Json all = Json::array();
  for (const StartEntry& each : starts) {
    Json lines = Json::array(), changed = Json::array();
    for (const auto& [word, text] : each.lines) lines.push_back({word, text});
    for (const ChangedFact& fact : each.changed)
      changed.push_back({{"topic", fact.topic}, {"was", fact.was}, {"is", fact.is}});
    all.push_back({{"time", each.time},
                   {"program", each.program},
                   {"step", each.step},
                   {"workers", each.workers},
                   {"lines", lines},
                   {"changed", changed}});
  }
  return all;
}

Json confusion_json(const ConfusionMatrix& matrix) {
  Json classes = Json::array();
  const std::vector<ClassScores> scores = scores_by_class(matrix);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const ClassScores& each = scores[i];
    classes.push_back({{"name", matrix.names[i]},
                       {"samples", each.samples},
                       {"precision", each.precision},
                       {"recall", each.recall},
                       {"f1", each.f1}});
  }
  return {{"classes", classes}, {"counts", matrix.counts}};
}

// Samples of an update on all workers, computed from the speed in the metrics.
std::optional<double> update_samples(const MetricsColumns& train) {
  const auto *speed = train.find("samples_per_s"), *time = train.find("step_ms");
  if (speed == nullptr || time == nullptr || speed->empty()) return std::nullopt;
  const double samples = std::round(speed->back() * time->back() / 1000);
  return samples >= 1 ? std::optional(samples) : std::nullopt;
}

// The number of workers of the last start; of a run that does not say it, according to the metrics.
int workers_of(const RunFile& run, const MetricsColumns& train, const RunRecipe& recipe) {
  if (!run.starts.empty()) return run.starts.back().workers;
  const auto samples = update_samples(train);
  const auto batch = recipe.number("data.batch_size");
  const double accumulation = recipe.number("train.grad_accumulation").value_or(1);
  if (samples && batch && *batch >= 1 && accumulation >= 1) {
    const double workers = *samples / (*batch * accumulation);
    if (workers >= 1 && workers <= kMostWorkers && workers == std::round(workers))
      return static_cast<int>(workers);
  }
  return 0;
}

// The launcher may have known what the recipe does not say.
std::vector<Phase> phases_of(const RunRecipe& recipe, const RunFile& run, int workers) {
  try {
    return recipe.phases(workers);
  } catch (const UserError&) {
    if (run.starts.empty() || run.starts.back().phases.empty()) throw;
    std::vector<Phase> phases;
    for (const auto& groups : run.starts.back().phases) {
      Phase& phase = phases.emplace_back();
      for (const std::vector<int>& ranks : groups) phase.push_back({.ranks = ranks});
    }
    return Topology(std::move(phases)).phases(workers, workers);
  }
}

// The recipe's topology may not have fitted the workers of the last start.
std::string topology_of(const RunRecipe& recipe, const RunFile& run) {
  const std::string other = value_of(run.facts, kTopologyInEffect);
  return other.empty() ? recipe.topology() : other;
}

Json topology_json(const RunRecipe& recipe, const RunFile& run, int workers) {
  const std::string method = recipe.text("parallel.method");
  const std::string name = topology_of(recipe, run);
  Json all = {{"name", name}, {"method", method.empty() ? "gossip" : method}};
  if (workers < 2 || workers > kMostWorkers || (!method.empty() && method != "gossip")) return all;
  const std::vector<Phase> phases = phases_of(recipe, run, workers);
  all["phases"] = phases.size();
  const double gamma = recipe.number("parallel.gamma").value_or(1);
  if (workers <= 256) {
    const double gap = spectral_gap(phases, workers, gamma);
    if (std::isfinite(gap)) all["gap"] = gap;  // no gamma can be relied on here
  }
  const double slices = std::max(1.0, recipe.number("parallel.slices").value_or(1));
  if (const auto steps = steps_to_reach_all(phases, workers))
    all["heard"] = slices * static_cast<double>(*steps);
  if (workers > kMostDrawnWorkers) return all;
  const double local = recipe.number("parallel.local_world_size").value_or(0);
  const bool framed = name == "alternating-exp-ring" && local >= 1 && local <= workers;
  const int machine = framed ? static_cast<int>(local) : 0;
  const std::string who =
      framed ? counted(workers / machine, "machine") + " of " + counted(machine, "worker")
             : counted(workers, "worker");
  all["svg"] = topology_svg(
      phases, {.title = name + ", " + who, .workers = workers, .per_machine = machine});
  return all;
}

// The lock tells whether a process is running the run.
std::string status_of(const RunFolder& folder, const MetricsTable& metrics, bool running) {
  if (!metrics.ends.empty()) return metrics.ends.front().status;
  return running || find_holder(folder.path()) ? "running" : "unknown";
}

class Gatherer {
 public:
  explicit Gatherer(const RunFolder& folder) : folder_(folder) {}

  std::string gather(bool running) {
    const MetricsTable metrics =
        read<MetricsTable>("metrics.jsonl", [&] { return read_metrics(folder_.metrics()); });
    const std::string status = status_of(folder_, metrics, running);
    const std::int64_t unread = metrics.unread - (metrics.cut && status == "running" ? 1 : 0);
    if (unread > 0) note("metrics.jsonl", counted(unread, "line") + " could not be read");
    const RunRecipe recipe =
        read<RunRecipe>("recipe.yaml", [&] { return RunRecipe(read_text(folder_.recipe())); });
    const RunFile run = read<RunFile>("run.json", [&] { return read_run_file(folder_.run()); });
    const auto warnings =
        read<std::vector<LogMessage>>("run.log", [&] { return warnings_in(folder_.log()); });
    const int workers = workers_of(run, metrics.train, recipe);
    const Json topology =
        read<Json>("topology", [&] { return topology_json(recipe, run, workers); });
    const auto matrix = read<std::optional<ConfusionMatrix>>(
        "eval-confusion.csv", [&] { return read_confusion(folder_.confusion()); });
    std::error_code failed;
    const fs::path full = fs::weakly_canonical(folder_.path(), failed);
    Json facts = {{"name", name_of(recipe, full)},
                  {"folder", folder_.path().string()},
                  {"status", status},
                  {"workers", workers},
                  {"topology", topology},
                  {"recipe", recipe_json(recipe, run.defaults)},
                  {"starts", starts_json(run.starts)},
                  {"warnings", warnings_json(warnings)},
                  {"later", later_json(metrics)},
                  {"resumes", resumes_json(metrics)}};
    if (!metrics.ends.empty())
      facts["end"] = {{"step", metrics.ends[0].step},
                      {"wall_s", metrics.ends[0].wall_s},
                      {"stopped_early", metrics.ends[0].stopped_early}};
    if (matrix) facts["confusion"] = confusion_json(*matrix);
    facts["problems"] = problems_;
    std::string text = script_text(facts);
    text.pop_back();
    return text + ",\"train\":" + columns_text(metrics.train) +
           ",\"eval\":" + columns_text(metrics.eval) + "}";
  }

 private:
  static std::string name_of(const RunRecipe& recipe, const fs::path& full) {
    const std::string name = recipe.text("name");
    return name.empty() ? full.filename().string() : name;
  }

  // Reads a part of the page; an error becomes an entry of "problems".
  template <typename T, typename Function>
  T read(const std::string& what, const Function& function) {
    try {
      return function();
    } catch (const UserError& error) {
      note(what, error.what());
      return T{};
    }
  }

  void note(const std::string& what, const std::string& problem) {
    problems_.push_back(what + ": " + problem);
  }

  RunFolder folder_;
  Json problems_ = Json::array();
};

}  // namespace

std::string run_as_json(const RunFolder& folder, bool running) {
  return Gatherer(folder).gather(running);
}

}  // namespace decent
