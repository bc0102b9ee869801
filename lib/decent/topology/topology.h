#pragma once
// Who averages with whom in which step: pure functions of a name and the number of workers. No
// communication here.
//
// A topology is a list of phases that repeat; a phase is a partition of the ranks into edges.
// Inside an edge with n members and weight w, worker i keeps W_ii = w of its own model and takes
// W_ij = (1 - w) / (n - 1) of each other member's; a one-member edge is W_ii = 1. Every phase is
// then a symmetric, doubly stochastic matrix, which is what keeps the average of all models
// unchanged by mixing (arXiv 2410.11998).

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// Workers that average with one another in one phase. `ranks` is sorted.
struct Edge {
  std::vector<int> ranks;
  double weight = 1.0;  // what a member keeps of its own model, in (0, 1]
  bool operator==(const Edge&) const = default;
};

/// Every rank stands in exactly one edge of a phase.
using Phase = std::vector<Edge>;

/// The names that make_topology knows.
std::span<const std::string> topology_names();

/// The phases of a topology for `world_size` workers, `local_world_size` of them on each node (only
/// alternating-exp-ring looks at that).
/// Throws UserError for an unknown name and where the topology cannot do this number of workers;
/// the message says which numbers it can.
std::vector<Phase> make_topology(std::string_view name, int world_size, int local_world_size);

/// Checks that phases are what the header says: at least one phase, every rank of [0, world_size)
/// in exactly one edge of each, weights in (0, 1]. Throws UserError naming phase and rank.
void validate_topology(std::span<const Phase> phases, int world_size);

/// The groups of ranks that `phases` connect with one another, each sorted, in the order of their
/// smallest ranks: one where information of every worker reaches every other.
std::vector<std::vector<int>> connected_parts(std::span<const Phase> phases, int world_size);

/// The edge of `phase` that `rank` stands in.
const Edge& edge_of(const Phase& phase, int rank);

}  // namespace decent
