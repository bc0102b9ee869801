// Every worker trains for itself; evaluations and the end average all copies.

#include "decent/train/methods/built_in.h"

namespace decent {
namespace {

std::vector<Phase> each_alone(const ParallelRecipe&, const Launch& launch) {
  Phase phase;
  for (int rank = 0; rank < launch.world_size; ++rank)
    phase.push_back({.ranks = {rank}, .self_weight = 1});
  return {phase};
}

}  // namespace

ParallelMethod alone_method() { return {.name = "none", .phases = each_alone}; }

}  // namespace decent
