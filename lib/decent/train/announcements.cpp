#include "decent/train/announcements.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "decent/config/loader.h"
#include "decent/core/host.h"
#include "decent/core/text.h"
#include "decent/core/version.h"
#include "decent/report/dry_run_text.h"
#include "decent/report/progress.h"
#include "decent/resume/topics.h"
#include "decent/task/device.h"
#include "decent/task/layout_advice.h"
#include "decent/task/probabilities.h"
#include "decent/task/scalings.h"
#include "decent/topology/analysis.h"
#include "decent/train/exchange_size.h"
#include "decent/train/fingerprint.h"
#include "decent/train/methods.h"
#include "decent/train/recipe_names.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

// Notes on what the recipe leaves as it is in the model file.
std::vector<std::string> notes_of_what_stays(const Task& task) {
  constexpr std::size_t kMaxNames = 8;
  std::vector<std::string> notes;
  const auto add = [&notes](const std::string& what, const std::vector<std::string>& names) {
    if (!names.empty()) notes.push_back(what + some_of(names, kMaxNames));
  };
  add("model.weights_ignore: stay as the model file has them: ", task.weights_left);
  if (task.lora) {
    std::vector<std::string> names;
    for (const Adapter& each : task.model->adapters()->all())
      names.push_back(each.name + " " + shape_text(each.weight.sizes()));
    add("model.lora: " + counted(std::ssize(names), "adapter") + " (" + task.lora->adapters + "): ",
        names);
    std::vector<std::string> whole;
    for (const auto& [name, tensor] : task.model->parameters())
      if (!is_of_adapter(name)) whole.push_back(name);
    add("model.lora.train: train as a whole: ", whole);
  }
  add("model.freeze_statistics: batch norm that keeps its statistics: ", task.frozen_statistics);
  return notes;
}

std::string batch_key(const Run& run) {
  return run.task.recipe.data.batch_tokens ? "batch_tokens" : "batch_size";
}

// An epoch drops its incomplete last update: in a fixed order, always the same samples.
std::optional<std::string> unused_end(const Run& run) {
  const Sampler& sampler = *run.plan.sampler;
  const std::int64_t left = sampler.left_out();
  if (run.task.recipe.data.shuffle || run.task.order || left == 0) return std::nullopt;
  const std::int64_t taken = sampler.updates_per_epoch() * sampler.update_samples();
  return "data.shuffle is false: the last " + std::to_string(left) + " of " +
         sampler.counted_samples(taken + left) +
         " are never trained on, as an epoch is whole updates of " +
         sampler.counted_samples(sampler.update_samples()) + "; another " + batch_key(run) +
         ", or data.shuffle: true, uses them";
}

std::optional<std::string> never_drawn(const Run& run) {
  const std::int64_t count = run.task.order ? run.task.order->never_drawn() : 0;
  if (count == 0) return std::nullopt;
  return "data.sampling: " + std::to_string(count) + " of " +
         counted(run.task.train->size(), "sample") + " have weight 0 and are never trained on";
}

// A warning if log.trace lies beyond the last step.
std::optional<std::string> trace_warning(const Run& run) {
  const auto& range = run.task.recipe.log.trace;
  if (!range || (*range)[0] <= run.plan.total_steps) return std::nullopt;
  return "log.trace: steps " + std::to_string((*range)[0]) + " to " + std::to_string((*range)[1]) +
         " come after the last step, " + std::to_string(run.plan.total_steps) +
         ": no trace will be written";
}

// Warnings about inputs that evaluation normalizes otherwise than training.
std::vector<std::string> scaling_warnings(const Task& task) {
  const DataRecipe& data = task.recipe.data;
  std::vector<std::string> warnings;
  for (const ForwardInput& input : task.inputs) {
    if (normalizations_of(data.transforms, input.field) ==
        normalizations_of(data.transforms_of_evaluation(), input.field))
      continue;
    warnings.push_back("data.eval_transforms does not normalize '" + input.field +
                       "' as data.transforms does, so that the model is evaluated on other "
                       "numbers than it learns from");
  }
  return warnings;
}

}  // namespace

std::vector<std::string> notes_of_data(const Task& task) {
  std::vector<std::string> notes;
  std::vector<std::string> said;
  for (const std::optional<DataSet>* data : {&task.train, &task.eval, &task.predict}) {
    if (!*data) continue;
    for (const std::string& note : (*data)->samples->source().notes()) {
      if (std::find(said.begin(), said.end(), note) != said.end()) continue;
      notes.push_back((*data)->key + ": " + note);
      said.push_back(note);
    }
  }
  return notes;
}

std::vector<std::string> mode_warnings(const Task& task) {
  const Model& model = *task.model;
  const std::string about = "model '" + task.recipe.model.path.string() + "'";
  std::vector<std::string> warnings;
  if (!model.fixed_mode_operators().empty() && !model.origin().fixes_modes_on_purpose())
    warnings.push_back(
        fixed_mode_warning(task.recipe.model.path.string(), model.fixed_mode_operators()));
  if (const std::string random = model.origin().random_in_evaluation(); !random.empty())
    warnings.push_back(about + " is random in evaluation, too: " + random);
  return warnings;
}

Notices notices_of_model(const Task& task, const Trial& trial) {
  Notices all{.notes = notes_of_what_stays(task), .warnings = layout_advice(task)};
  for (std::string& warning : mode_warnings(task)) all.warnings.push_back(std::move(warning));
  for (std::string& warning : scaling_warnings(task)) all.warnings.push_back(std::move(warning));
  if (task.lora && !task.lora->warning.empty()) all.warnings.push_back(task.lora->warning);
  const std::vector<std::string> data = notes_of_data(task);
  all.notes.insert(all.notes.end(), data.begin(), data.end());
  all.notes.insert(all.notes.end(), trial.notes.begin(), trial.notes.end());
  const OutputAdvice output = output_advice(task, trial);
  if (!output.note.empty()) all.notes.push_back(output.note);
  if (!output.warning.empty()) all.warnings.insert(all.warnings.begin(), output.warning);
  return all;
}

void announce(Log& log, const Notices& notices) {
  for (const std::string& note : notices.notes) log.info("note     " + note);
  for (const std::string& warning : notices.warnings) log.warn(warning);
}

Notices notices_of(const Run& run, int workers) {
  const Recipe& recipe = run.task.recipe;
  Notices all;
  const DeviceChoice& device = run.task.device;
  if (!device.note.empty()) all.notes.push_back(device.note);
  if (!device.sharing_problem.empty()) {
    all.warnings.push_back(
        "workers of one machine exchange by gloo, as they cannot share memory: " +
        device.sharing_problem);
  }
  if (run.trial.weights_needed_later && recipe.parallel.update == UpdateMode::automatic) {
    all.notes.emplace_back(
        "the model uses weights after their gradients are complete: they are updated after "
        "backward, not in it");
  }
  if (const auto unused = unused_exchange(run)) all.notes.push_back(*unused);
  if (const auto edge = large_edge(run)) all.notes.push_back(large_edge_note(*edge));
  if (const auto unused = unused_end(run)) all.notes.push_back(*unused);
  if (const auto note = never_drawn(run)) all.notes.push_back(*note);
  const Notices model = notices_of_model(run.task, run.trial);
  all.notes.insert(all.notes.end(), model.notes.begin(), model.notes.end());
  for (std::string& note : run.task.model->origin().training_notes())
    all.notes.push_back(std::move(note));
  const ParallelMethod& method = method_of(run);
  const auto parts = connected_parts(run.plan.topology, workers);
  if (method.averages_weights && parts.size() > 1)
    all.warnings.push_back(disconnected_warning(parts));
  if (const auto warning = trace_warning(run)) all.warnings.push_back(*warning);
  if (const auto warning = lr_warning(recipe.schedule, run.plan.rates, run.plan.total_steps))
    all.warnings.push_back(*warning);
  all.warnings.insert(all.warnings.end(), model.warnings.begin(), model.warnings.end());
  const std::string lost = run.task.model->origin().lost_for_inference();
  if (!lost.empty())
    all.warnings.push_back(
        "model '" + recipe.model.path.string() +
        "' was written for inference, and trains without what that took away: " + lost +
        ". The run that wrote it keeps all of this by model.export_mode: train");
  return all;
}

std::string line_about_topology(const Run& run, int workers, const Facts& before) {
  if (!method_of(run).averages_weights) return "";
  const std::string own = topology_name(run.task.recipe.parallel.topology);
  const std::string& otherwise = run.plan.topology_otherwise;
  if (!otherwise.empty()) {
    return "topology " + own + " does not fit " + counted(workers, "worker") + ": " + otherwise +
           " replaces it until it fits again (parallel.topology_otherwise)";
  }
  const std::string other = value_of(before, kTopologyInEffect);
  if (other.empty() || other == own) return "";
  return "topology " + own + " fits " + counted(workers, "worker") + " again: " + other +
         " no longer replaces it";
}

namespace {

// Without the model's tensors, of which there may be thousands and which no resume changes, and
// without the groups of workers, which are the phases.
Facts facts_to_keep(const Run& run) {
  Facts facts = facts_of(run);
  std::erase_if(facts, [](const auto& fact) { return !rule_of(fact.first).is_kept; });
  return facts;
}

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

}  // namespace

RunFacts run_facts(const Run& run, const RunSize& size) {
  const Recipe& recipe = run.task.recipe;
  return {.workers = size.workers,
          .machine = machine_text() + ", LibTorch " + TORCH_VERSION,
          .threads = at::get_num_threads(),
          .device = device_text(run.task.device, size.workers),
          .parallel = method_of(run).text(run),
          .model = recipe.model.path.string(),
          .parameters = size.parameters,
          .buckets = size.buckets,
          .train_samples = run.task.train->size(),
          .eval_samples = run.task.eval ? std::optional(run.task.eval->size()) : std::nullopt,
          .steps = run.plan.total_steps,
          .batch_sizes = run.plan.sampler->batch_sizes(),
          .batch_tokens = recipe.data.batch_tokens,
          .updates_per_epoch = run.plan.sampler->updates_per_epoch(),
          .sent = sent_facts(run, size.workers),
          .optimizer = recipe.optimizer.name,
          .lr = {.value = run.plan.rates.peak, .given = recipe.optimizer.lr},
          .output = recipe.output.string()};
}

StartEntry announce_run(Log& log, const Run& run, const RunSize& size) {
  StartEntry start{.time = local_time(),
                   .program = version_text(),
                   .step = run.plan.first_step,
                   .workers = size.workers,
                   .lines = start_texts(run_facts(run, size))};
  for (const std::string& line : start_lines(start.lines)) log.info(line);
  for (std::size_t i = 0; method_of(run).averages_weights && i < run.plan.topology.size(); ++i) {
    const Phase& phase = run.plan.topology[i];
    log.detail("phase " + std::to_string(i) + ": " + phase_text(phase, 1000));
    auto& groups = start.phases.emplace_back();
    for (const Edge& edge : phase) groups.push_back(edge.ranks);
  }
  const Notices notices = notices_of(run, size.workers);
  announce(log, notices);
  for (const std::string& note : notices.notes) start.lines.emplace_back("note", note);
  return start;
}

void write_start(Log& log, const Run& run, StartEntry start) {
  const Recipe& recipe = run.task.recipe;
  const std::string problem =
      add_start(RunFolder(recipe.output).run(), std::move(start), run.plan.resumes,
                facts_to_keep(run), recipe_defaults(recipe, recipe_names()));
  if (!problem.empty()) log.warn(problem + ": a new one is begun");
}

}  // namespace decent
