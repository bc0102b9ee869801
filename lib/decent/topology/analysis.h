#pragma once
// How fast the phases of a topology spread information, and whether all workers come to agree.

#include <cstdint>
#include <optional>
#include <span>

#include "decent/topology/topology.h"

namespace decent {

/// 1 minus the second largest singular value of one period's product of mixing matrices (1-gamma) I
/// + gamma W, in [0, 1]. A period removes at least this share of the disagreement: 1 means that all
/// workers agree after a period, 0 that some never hear of others. arXiv 2410.11998 bounds
/// convergence by it.
double spectral_gap(std::span<const Phase> phases, int world_size, double gamma = 1.0);

/// The smallest number of steps, beginning with the first phase, after which every worker's weights
/// contain a part of every other worker's weights; nullopt if that never happens.
std::optional<std::int64_t> steps_to_reach_all(std::span<const Phase> phases, int world_size);

}  // namespace decent
