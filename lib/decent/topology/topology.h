#pragma once
// Which workers average with one another in which step: pure functions of a name and the number of
// workers, without communication.
//
// A topology is a list of phases that repeat; a phase is a partition of the ranks into edges.
// Inside an edge with n members and self-weight w, worker i keeps W_ii = w of its own model and
// takes W_ij = (1 - w) / (n - 1) of every other member's. An edge of one member has W_ii = 1. So
// every phase is a symmetric, doubly stochastic matrix W, and mixing does not change the average of
// all models (arXiv 2410.11998).

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace decent {

/// Stands for the self-weight 1 / n of an edge whose n members have equal weights.
inline constexpr double kEqualShares = -1;

/// Workers that average with one another in one phase. In phases that a Topology returns, `ranks`
/// is sorted and `self_weight` is in (0, 1].
struct Edge {
  std::vector<int> ranks;
  double self_weight = kEqualShares;  // W_ii: the share that a member keeps of its own model
  bool operator==(const Edge&) const = default;
};

/// Every rank is in exactly one edge of a phase.
using Phase = std::vector<Edge>;

/// Makes the phases for `world_size` workers, `local_world_size` of them on each node.
using TopologyFunction = std::function<std::vector<Phase>(int world_size, int local_world_size)>;

/// Makes a topology available under a name, in this process. All workers must register the same.
/// Throws UserError for an empty name, a name that is taken, and an empty function. Any thread.
void register_topology(const std::string& name, TopologyFunction function);

/// The names that make_topology knows: the built-in ones, then those that were registered.
std::vector<std::string> topology_names();

/// The phases of a topology for `world_size` workers, `local_world_size` of them on each node (only
/// alternating-exp-ring uses that number). `local_setting` is the user's name for that number in
/// messages. Throws UserError for an unknown name, if the topology does not support this number of
/// workers (the message says which it does), and if a registered function returns invalid phases.
std::vector<Phase> make_topology(std::string_view name, int world_size, int local_world_size,
                                 std::string_view local_setting = "local_world_size");

/// Checks that there is at least one phase, that every rank of [0, world_size) is in exactly one
/// edge of each phase, and that weights are in (0, 1]. Throws UserError naming phase and rank.
void validate_topology(std::span<const Phase> phases, int world_size);

/// A topology as users choose it: by name, as phases, or as a function.
class Topology {
 public:
  Topology() : Topology("complete") {}
  Topology(std::string name);  // a name that make_topology knows
  Topology(const char* name) : Topology(std::string(name)) {}
  Topology(std::vector<Phase> phases);
  template <typename Function>
    requires std::is_invocable_r_v<std::vector<Phase>, Function, int, int>
  Topology(Function function) : function_(std::move(function)) {}

  /// Valid phases, with the ranks of every edge sorted and equal weights computed. Throws UserError
  /// as make_topology and validate_topology do.
  std::vector<Phase> phases(int world_size, int local_world_size) const;

 private:
  TopologyFunction function_;
};

/// The groups of ranks that `phases` connect with one another, each sorted, in the order of their
/// smallest ranks. There is one group if information of every worker reaches every other worker.
std::vector<std::vector<int>> connected_parts(std::span<const Phase> phases, int world_size);

/// The edge of `phase` that contains `rank`. Throws std::logic_error if there is none.
const Edge& edge_of(const Phase& phase, int rank);

}  // namespace decent
