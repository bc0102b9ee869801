#pragma once
// Who averages with whom in which step: pure functions of a name and the number of workers. No
// communication here.
//
// A topology is a list of phases that repeat; a phase is a partition of the ranks into edges.
// Inside an edge with n members and weight w, worker i keeps W_ii = w of its own model and takes
// W_ij = (1 - w) / (n - 1) of each other member's; a one-member edge is W_ii = 1. Every phase is
// then a symmetric, doubly stochastic matrix, which is what keeps the average of all models
// unchanged by mixing (arXiv 2410.11998).

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace decent {

/// The weight of an edge whose members count alike: 1 / n.
inline constexpr double kEqualShares = -1;

/// Workers that average with one another in one phase. In what a Topology gives, `ranks` is sorted
/// and `weight` is in (0, 1].
struct Edge {
  std::vector<int> ranks;
  double weight = kEqualShares;  // what a member keeps of its own model
  bool operator==(const Edge&) const = default;
};

/// Every rank stands in exactly one edge of a phase.
using Phase = std::vector<Edge>;

/// Makes the phases for `world_size` workers, `local_world_size` of them on each node.
using TopologyFunction = std::function<std::vector<Phase>(int world_size, int local_world_size)>;

/// Makes a topology known by a name of its own, for this process; all workers register the same.
/// Throws UserError for an empty name, one that is taken, and an empty function. Any thread.
void register_topology(const std::string& name, TopologyFunction function);

/// The names that make_topology knows: ours, then those that were registered.
std::vector<std::string> topology_names();

/// The phases of a topology for `world_size` workers, `local_world_size` of them on each node (only
/// alternating-exp-ring looks at that).
/// Throws UserError for an unknown name, where the topology cannot do this number of workers (the
/// message says which numbers it can), and where a registered function gives no valid phases.
std::vector<Phase> make_topology(std::string_view name, int world_size, int local_world_size);

/// Checks that phases are what the header says: at least one phase, every rank of [0, world_size)
/// in exactly one edge of each, weights in (0, 1]. Throws UserError naming phase and rank.
void validate_topology(std::span<const Phase> phases, int world_size);

/// A topology as users choose it: by its name, as phases, or as a function.
class Topology {
 public:
  Topology() : Topology("complete") {}
  Topology(std::string name);  // of make_topology
  Topology(const char* name) : Topology(std::string(name)) {}
  Topology(std::vector<Phase> phases);
  template <typename Function>
  requires std::is_invocable_r_v < std::vector<Phase>, Function,
  int, int > Topology(Function function) : function_(std::move(function)) {}

  /// The phases, valid ones, every edge's ranks sorted and equal shares worked out. Throws
  /// UserError as make_topology and validate_topology do.
  std::vector<Phase> phases(int world_size, int local_world_size) const;

 private:
  TopologyFunction function_;
};

/// The groups of ranks that `phases` connect with one another, each sorted, in the order of their
/// smallest ranks: one where information of every worker reaches every other.
std::vector<std::vector<int>> connected_parts(std::span<const Phase> phases, int world_size);

/// The edge of `phase` that `rank` stands in.
const Edge& edge_of(const Phase& phase, int rank);

}  // namespace decent
