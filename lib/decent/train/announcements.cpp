#include "decent/train/announcements.h"

#include "decent/report/dry_run_text.h"
#include "decent/report/progress.h"
#include "decent/task/device.h"
#include "decent/task/layout_advice.h"
#include "decent/task/probabilities.h"
#include "decent/topology/analysis.h"
#include "decent/train/run_trace.h"
#include "decent/train/updates.h"

namespace decent {

Notices notices_of_model(const Setup& setup) {
  Notices all{.notes = {}, .warnings = layout_advice(setup)};
  const OutputAdvice output = output_advice(setup);
  if (!output.note.empty()) all.notes.push_back(output.note);
  if (!output.warning.empty()) all.warnings.insert(all.warnings.begin(), output.warning);
  return all;
}

void announce(Log& log, const Notices& notices) {
  for (const std::string& note : notices.notes) log.info("note     " + note);
  for (const std::string& warning : notices.warnings) log.warn(warning);
}

Notices notices_of(const Setup& setup, int workers) {
  const Recipe& recipe = setup.recipe;
  Notices all;
  if (!setup.device.note.empty()) all.notes.push_back(setup.device.note);
  if (setup.weights_needed_later && recipe.parallel.update == UpdateMode::automatic) {
    all.notes.emplace_back(
        "the model uses weights after their gradients are complete: they are updated after "
        "backward, not in it");
  }
  const Notices model = notices_of_model(setup);
  all.notes.insert(all.notes.end(), model.notes.begin(), model.notes.end());
  const auto parts = connected_parts(setup.topology, workers);
  if (parts.size() > 1) all.warnings.push_back(disconnected_warning(parts));
  if (const auto warning = trace_warning(setup)) all.warnings.push_back(*warning);
  all.warnings.insert(all.warnings.end(), model.warnings.begin(), model.warnings.end());
  const auto& fixed = setup.model->fixed_mode_operators();
  if (!fixed.empty()) all.warnings.push_back(fixed_mode_warning(recipe.model.path.string(), fixed));
  return all;
}

void announce_run(Log& log, const Setup& setup, const RunSize& size) {
  const Recipe& recipe = setup.recipe;
  const Plan plan{
      .workers = size.workers,
      .device = device_text(setup.device, size.workers),
      .topology = topology_name(recipe.parallel.topology),
      .phases = static_cast<std::int64_t>(setup.topology.size()),
      .model = recipe.model.path.string(),
      .parameters = size.parameters,
      .buckets = size.buckets,
      .train_samples = setup.train.source->size(),
      .eval_samples = setup.eval ? std::optional(setup.eval->source->size()) : std::nullopt,
      .steps = setup.total_steps,
      .batch_size = recipe.data.batch_size,
      .updates_per_epoch = setup.sampler->updates_per_epoch(),
      .optimizer = recipe.optimizer.name,
      .lr = recipe.optimizer.lr,
      .output = recipe.output.string()};
  for (const std::string& line : start_lines(plan)) log.info(line);
  for (std::size_t i = 0; i < setup.topology.size(); ++i) {
    log.detail("phase " + std::to_string(i) + ": " + phase_text(setup.topology[i], 1000));
  }
  announce(log, notices_of(setup, size.workers));
}

}  // namespace decent
