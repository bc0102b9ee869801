// Every worker updates its own copy and averages weights with its neighbours (arXiv 2410.11998).

#include <algorithm>
#include <utility>

#include "decent/core/error.h"
#include "decent/train/methods/built_in.h"

namespace decent {
namespace {

std::vector<Phase> phases_of(const TopologyRecipe& recipe, int workers, int local) {
  if (recipe.phases.empty())
    return make_topology(recipe.name, workers, local, "parallel.local_world_size");
  std::vector<Phase> phases;
  for (const std::vector<EdgeRecipe>& edges : recipe.phases) {
    Phase& phase = phases.emplace_back();
    for (const EdgeRecipe& edge : edges) {
      // Ranks that do not fit an int do not exist either; the check below says so.
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

std::vector<Phase> topology_on(const ParallelRecipe& recipe, const Launch& launch) {
  const auto local = recipe.local_world_size.value_or(launch.local_world_size);
  return phases_of(recipe.topology, launch.world_size, static_cast<int>(local));
}

}  // namespace

ParallelMethod gossip_method() {
  return {.name = "gossip", .averages_weights = true, .phases = topology_on};
}

}  // namespace decent
