// Every worker updates its own copy and averages weights with its neighbours (arXiv 2410.11998).

#include <algorithm>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/parallel/decentralized_data_parallel.h"
#include "decent/parallel/exchange/by_machine.h"
#include "decent/train/methods/built_in.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

std::vector<Phase> phases_of(const TopologyRecipe& recipe, int workers, int local) {
  if (recipe.phases.empty())
    return make_topology(recipe.name, workers, local, "parallel.local_world_size");
  std::vector<Phase> phases;
  for (const std::vector<EdgeRecipe>& edges : recipe.phases) {
    Phase& phase = phases.emplace_back();
    for (const EdgeRecipe& edge : edges) {
      // A rank that does not fit an int cannot exist; the check below says so.
      std::vector<int> ranks;
      for (std::int64_t rank : edge.ranks) {
        ranks.push_back(static_cast<int>(std::clamp<std::int64_t>(rank, -1, 1 << 30)));
      }
      std::sort(ranks.begin(), ranks.end());
      phase.push_back({std::move(ranks), edge.weight});
    }
  }
  try {
    validate_topology(phases, workers);
  } catch (const UserError& error) {
    throw UserError(std::string("parallel.topology: ") + error.what());
  }
  return phases;
}

std::vector<Phase> topology_on(const ParallelRecipe& recipe, const Member& member) {
  const auto local = recipe.local_world_size.value_or(member.local_size);
  return phases_of(recipe.topology, member.size(), static_cast<int>(local));
}

std::string exchange_text(const ParallelRecipe& recipe) {
  if (!recipe.comm_dtype_within) return recipe.comm_dtype;
  return recipe.comm_dtype + " between machines, " + *recipe.comm_dtype_within + " within";
}

ExchangeChoice exchange_of(const Run& run) {
  const ParallelRecipe& recipe = run.task.recipe.parallel;
  const ExchangeOptions options{.slices = recipe.slices, .own = recipe.exchange_options};
  if (!recipe.comm_dtype_within) return {recipe.comm_dtype, options};
  return by_machine(recipe.comm_dtype, *recipe.comm_dtype_within, run.plan.machines, options);
}

std::function<ExchangeCosts(int)> costs_of_exchange(const ParallelRecipe& recipe) {
  return exchange_method(recipe.comm_dtype).costs;
}

std::string topology_text(const Run& run) {
  return "topology " + topology_name(run) + " (" + counted(std::ssize(run.plan.topology), "phase") +
         ")";
}

std::unique_ptr<TrainedParameters> make_decentralized(const Run& run,
                                                      std::shared_ptr<Communicator> communicator,
                                                      const TrainingSigns& signs) {
  return std::make_unique<DecentralizedDataParallel<TrainedModule>>(
      TrainedModule(*run.task.model), std::move(communicator),
      DecentralizedOptions{.topology = run.plan.topology,
                           .training = training_options(run, signs),
                           .gamma = run.task.recipe.parallel.gamma,
                           .exchange = exchange_of(run)});
}

}  // namespace

ParallelMethod gossip_method() {
  return {.name = "gossip",
          .averages_weights = true,
          .phases = topology_on,
          .sent = exchange_text,
          .costs = costs_of_exchange,
          .text = topology_text,
          .make = make_decentralized};
}

}  // namespace decent
