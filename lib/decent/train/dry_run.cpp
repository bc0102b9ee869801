#include "decent/train/dry_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "decent/comm/cuda.h"
#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/parallel/missing_gradients.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/optimizer_states.h"
#include "decent/runfolder/output_lock.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/device.h"
#include "decent/train/announcements.h"
#include "decent/train/exchange_size.h"
#include "decent/train/methods.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

std::int64_t elements_of(const NamedTensors& tensors) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += tensor.numel();
  return count;
}

std::vector<std::pair<std::string, std::int64_t>> largest(const NamedTensors& trained) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (const auto& [name, tensor] : trained) all.emplace_back(name, tensor.numel());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), kShown));
  return all;
}

// The first step, the end of the warm-up, the middle and the last.
std::vector<std::pair<std::int64_t, double>> learning_rates(const Run& run) {
  const auto& schedule = run.task.recipe.schedule;
  std::vector<std::int64_t> steps = {1, schedule.options.get<std::int64_t>("warmup_steps") + 1,
                                     (1 + run.plan.total_steps) / 2, run.plan.total_steps};
  if (schedule.name == "constant") steps = {1};
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<std::pair<std::int64_t, double>> rates;
  for (std::int64_t step : steps) {
    if (step <= run.plan.total_steps) rates.emplace_back(step, run.plan.rates.schedule(step));
  }
  return rates;
}

std::string note_on(const RunFolder& folder, bool resumes) {
  try {
    check_not_held(folder.path());
    if (!resumes) folder.check_free();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

// The notices of the start of a run and of its first step, which the trial has gone through.
Notices notices_of_run(const Run& run, int workers) {
  Notices all = notices_of(run, workers);
  // Of several batches, here or on other workers, another may give these parameters a gradient.
  const Recipe& recipe = run.task.recipe;
  const bool only_batch =
      recipe.train.grad_accumulation == 1 && (workers == 1 || !method_of(run).copies_alike);
  if (!run.trial.without_gradient.empty() && only_batch) {
    all.warnings.push_back(no_gradient_warning(run.plan.first_step + 1, run.trial.without_gradient,
                                               without_gradient(run.plan.topology)));
  }
  return all;
}

std::int64_t adapted_bytes(const Task& task) {
  NamedTensors weights;
  if (task.lora) {
    for (const Adapter& each : task.model->adapters()->all())
      weights.emplace_back(each.name, each.weight);
  }
  return bytes_of(weights);
}

std::string update_text(const Sampler& sampler, bool of_tokens) {
  const std::string dealt = sampler.counted_samples(sampler.update_samples());
  if (!of_tokens) return dealt;
  return dealt + ", about " + counted(std::llround(sampler.mean_update_samples()), "sample");
}

double peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

DryRunFacts dry_run_facts(const Run& run, const Member& member, const DryRunOptions& options) {
  const Recipe& recipe = run.task.recipe;
  Notices notices = notices_of_run(run, member.size());
  const NamedTensors trained = trained_part(run.task.model->parameters());
  const NamedTensors frozen = untrained_part(run.task.model->all_parameters());
  const std::vector<std::int64_t> buckets = bucket_bytes(run);
  return {.run = run_facts(run, {.workers = member.size(),
                                 .parameters = elements_of(trained),
                                 .buckets = std::ssize(buckets)}),
          .frozen_parameters = elements_of(frozen),
          .frozen_bytes = bytes_of(frozen),
          .adapted_bytes = adapted_bytes(run.task),
          .trained_bytes = bytes_of(trained),
          .largest = largest(trained),
          .buffers = static_cast<std::int64_t>(run.task.model->buffers().size()),
          .buffer_bytes = bytes_of(run.task.model->buffers()),
          .bucket_bytes = buckets,
          .optimizer_bytes = bytes_of_states(*make_update(recipe.optimizer), trained, buckets),
          .exchange_bytes = exchange_memory(run, member.place()),
          .import = run.task.model->origin().report(options.full_report),
          .notes = std::move(notices.notes),
          .warnings = std::move(notices.warnings),
          .peak_bytes = peak_bytes(),
          .gpu = gpu_memory(run.task.device.device),
          .in_backward = updates_in_backward(run),
          .averages_weights = method_of(run).averages_weights,
          .topology = topology_name(run),
          .gamma = recipe.parallel.gamma,
          .phases = run.plan.topology,
          .update_samples = update_text(*run.plan.sampler, recipe.data.batch_tokens.has_value()),
          .left_out = run.plan.sampler->counted_samples(run.plan.sampler->left_out()),
          .learning_rates = learning_rates(run),
          .output_note = note_on(RunFolder(recipe.output), options.resumes)};
}

}  // namespace decent
