#pragma once
// What a topology does to information: how fast, and whether, workers come to agree.

#include <cstdint>
#include <optional>
#include <span>

#include "decent/topology/topology.h"

namespace decent {

/// 1 minus the second largest singular value of one period's product of mixing matrices
/// (1-gamma) I + gamma W: the share of disagreement that a period takes away, at least. 1: all
/// workers agree after it; 0: some never hear of others. (arXiv 2410.11998 and the gossip
/// literature bound convergence by it.)
double spectral_gap(std::span<const Phase> phases, int world_size, double gamma = 1.0);

/// The smallest number of steps after which every worker's weights hold a part of every other's,
/// beginning with the first phase; nothing where that never happens.
std::optional<std::int64_t> steps_to_reach_all(std::span<const Phase> phases, int world_size);

}  // namespace decent
