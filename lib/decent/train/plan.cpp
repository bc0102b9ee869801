#include "decent/train/plan.h"

#include <limits>
#include <string>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/train/batch_sizes.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

std::int64_t total_steps(const TrainRecipe& recipe, const Sampler& sampler) {
  if (recipe.steps) return *recipe.steps;
  const std::int64_t steps = sampler.updates_until(recipe.epochs.value());
  if (steps == std::numeric_limits<std::int64_t>::max()) {
    throw UserError("train.epochs: " + counted(*recipe.epochs, "epoch") + " of " +
                    counted(sampler.updates_per_epoch(), "update") +
                    " are more than can be counted");
  }
  return steps;
}

std::unique_ptr<Sampler> make_sampler(const Task& task, const Member& member,
                                      const std::optional<ResumePoint>& resumed) {
  const ResumePoint from = resumed.value_or(ResumePoint{});
  const Recipe& recipe = task.recipe;
  std::string remedy = std::string("lower data.") +
                       (task.token_batches ? "batch_tokens" : "batch_size") +
                       " or train.grad_accumulation, or use fewer workers";
  if (task.order && task.order->epoch_size() < task.train->size())
    remedy += "; samples of weight 0 are not counted, as data.sampling.replacement is false";
  return std::make_unique<Sampler>(
      BatchPlan{.samples = task.train->size(),
                .batch_size = recipe.data.batch_size.usual,
                .member = member,
                .accumulation = recipe.train.grad_accumulation,
                .shuffle = recipe.data.shuffle,
                .seed = static_cast<std::uint64_t>(recipe.seed),
                .first_update = from.step,
                .first_position = from.position,
                .remedy = remedy,
                .weighted = task.order,
                .batch_sizes = batch_sizes(recipe.data.batch_size, member, resumed.has_value()),
                .token_batches = task.token_batches});
}

// Sets the phases of the topology in effect.
void choose_topology(const ParallelRecipe& parallel, const Member& member, Plan& plan) {
  const ParallelMethod& method = parallel_method(parallel.method);
  std::string refusal;
  try {
    plan.topology = method.phases(parallel, member);
    return;
  } catch (const UserError& error) {
    if (!plan.resumes) throw;
    refusal = error.what();
  }
  ParallelRecipe otherwise = parallel;
  otherwise.topology = {.name = parallel.topology_otherwise, .phases = {}};
  try {
    plan.topology = method.phases(otherwise, member);
  } catch (const UserError& error) {
    throw UserError(refusal + "\nparallel.topology_otherwise does not fit either: " + error.what());
  }
  plan.topology_otherwise = parallel.topology_otherwise;
}

}  // namespace

Plan make_plan(const Task& task, const Member& member, const std::optional<ResumePoint>& from) {
  Plan plan{.topology = {},
            .machines = member.machines,
            .sampler = make_sampler(task, member, from),
            .rates = {},
            .first_step = from ? from->step : 0,
            .resumes = from.has_value()};
  choose_topology(task.recipe.parallel, member, plan);
  plan.total_steps = total_steps(task.recipe.train, *plan.sampler);
  plan.rates = learning_rates_of(task.recipe, member.size(), plan.total_steps,
                                 plan.sampler->updates_per_epoch());
  plan.rules = EvaluationRules(task.recipe, plan.rates.plateau);
  return plan;
}

Run prepare_run(const Recipe& recipe, const Launch& launch, const Member& member,
                const LearnedData* known, bool may_resume) {
  Task task = open_task(recipe, launch, Purpose::training, known);
  Plan plan = make_plan(task, member, may_resume ? std::optional(ResumePoint{}) : std::nullopt);
  const std::vector<std::int64_t> first = plan.sampler->micro_batch(0, 0);
  Trial trial = try_task(task, member, task.token_batches ? task.token_batches->longest() : first);
  return {std::move(task), std::move(plan), std::move(trial)};
}

}  // namespace decent
