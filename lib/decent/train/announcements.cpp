#include "decent/train/announcements.h"

#include "decent/config/choices.h"
#include "decent/topology/analysis.h"
#include "decent/train/device.h"
#include "decent/train/dry_run_text.h"
#include "decent/train/probabilities.h"
#include "decent/train/progress.h"
#include "decent/train/run_trace.h"
#include "decent/train/updates.h"

namespace decent {

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
      .optimizer = std::string(name_of(recipe.optimizer.name)),
      .lr = recipe.optimizer.lr,
      .output = recipe.output.string()};
  for (const std::string& line : start_lines(plan)) log.info(line);
  if (!setup.device.note.empty()) log.info("note     " + setup.device.note);
  for (std::size_t i = 0; i < setup.topology.size(); ++i) {
    log.detail("phase " + std::to_string(i) + ": " + phase_text(setup.topology[i], 1000));
  }
  const auto parts = connected_parts(setup.topology, size.workers);
  if (parts.size() > 1) log.warn(disconnected_warning(parts));
  if (const auto warning = trace_warning(setup)) log.warn(*warning);
  if (setup.weights_needed_later && recipe.parallel.update == UpdateMode::automatic) {
    log.info(
        "note     the model uses weights after their gradients are complete: they are updated "
        "after backward, not in it");
  }
  announce_output(setup, log);
  const auto& fixed = setup.model->fixed_mode_operators();
  if (!fixed.empty()) log.warn(fixed_mode_warning(recipe.model.path.string(), fixed));
}

}  // namespace decent
