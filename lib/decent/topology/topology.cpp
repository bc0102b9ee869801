#include "decent/topology/topology.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

Edge alone(int rank) { return {{rank}, 1.0}; }

Edge pair(int a, int b) { return {{std::min(a, b), std::max(a, b)}, 0.5}; }

Edge uniform(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const double weight = 1.0 / static_cast<double>(ranks.size());
  return {std::move(ranks), weight};
}

std::vector<Phase> complete(int world_size, int /*local_world_size*/) {
  std::vector<int> everyone(static_cast<std::size_t>(world_size));
  std::iota(everyone.begin(), everyone.end(), 0);
  return {{uniform(everyone)}};
}

// With an odd number of workers, one worker is alone in each phase; each worker has its turn.
std::vector<Phase> odd_ring(int n) {
  std::vector<Phase> phases;
  for (int p = 0; p < n; ++p) {
    Phase phase;
    for (int i = 0; i < (n - 1) / 2; ++i)
      phase.push_back(pair((p + 2 * i) % n, (p + 2 * i + 1) % n));
    phase.push_back(alone((p + n - 1) % n));
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::vector<Phase> ring(int n, int /*local_world_size*/) {
  if (n == 1) return {{alone(0)}};
  if (n % 2 == 1) return odd_ring(n);
  Phase right;
  Phase left;
  for (int i = 0; i < n; i += 2) {
    right.push_back(pair(i, i + 1));
    left.push_back(pair(i, (i + n - 1) % n));
  }
  return {right, left};
}

// Pairs the neighbours of every cycle j -> j + hop (mod n), walked from its smallest rank.
Phase pair_along_cycles(int n, int hop) {
  Phase phase;
  std::vector<bool> seen(static_cast<std::size_t>(n));
  for (int start = 0; start < n; ++start) {
    std::vector<int> cycle;
    for (int j = start; !seen[static_cast<std::size_t>(j)]; j = (j + hop) % n) {
      seen[static_cast<std::size_t>(j)] = true;
      cycle.push_back(j);
    }
    for (std::size_t i = 0; i + 1 < cycle.size(); i += 2)
      phase.push_back(pair(cycle[i], cycle[i + 1]));
    if (cycle.size() % 2 == 1) phase.push_back(alone(cycle.back()));
  }
  return phase;
}

std::vector<Phase> one_peer_exp(int n, int /*local_world_size*/) {
  const int rounds = std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))));
  std::vector<Phase> phases;
  for (int p = 0; p < rounds; ++p) phases.push_back(pair_along_cycles(n, (1 << p) % n));
  return phases;
}

// An edge of the workers of one node, or of two.
Edge node_group(std::initializer_list<int> nodes, int local_world_size) {
  std::vector<int> ranks;
  for (int node : nodes) {
    for (int i = 0; i < local_world_size; ++i) ranks.push_back(node * local_world_size + i);
  }
  return uniform(ranks);
}

// The topology does not support this number of workers with this many per node. make_topology()
// adds advice for the user.
class WrongWorkersPerNode : public UserError {
 public:
  using UserError::UserError;
};

void check_alternating(int n, int local) {
  const int nodes = n / local;
  if (n % local == 0 && nodes >= 2 && std::has_single_bit(static_cast<unsigned>(nodes))) return;
  throw WrongWorkersPerNode(
      "topology alternating-exp-ring cannot do " + counted(n, "worker") + " with " +
      std::to_string(local) + " per node: it needs 2, 4, 8, .. whole nodes, so with " +
      std::to_string(local) + " per node " + std::to_string(2 * local) + ", " +
      std::to_string(4 * local) + ", " + std::to_string(8 * local) + ", .. workers.");
}

// A round has two phases. Two nodes that exchange in a round form one group in one phase, and one
// group each in the other. A counter over all pairs of nodes lets half of the pairs meet in the
// first phase and half in the second.
std::vector<Phase> alternating_exp_ring(int n, int local) {
  check_alternating(n, local);
  const int nodes = n / local;
  std::vector<Phase> phases;
  int counter = 0;
  for (int hop = 1; hop < nodes; hop *= 2) {
    Phase first;
    Phase second;
    std::vector<bool> used(static_cast<std::size_t>(nodes));
    for (int j = 0; j < nodes; ++j) {
      if (used[static_cast<std::size_t>(j)]) continue;
      const int t = (j + hop) % nodes;
      used[static_cast<std::size_t>(j)] = used[static_cast<std::size_t>(t)] = true;
      Phase& together = counter % 2 == 0 ? second : first;
      Phase& apart = counter % 2 == 0 ? first : second;
      together.push_back(node_group({j, t}, local));
      apart.push_back(node_group({j}, local));
      apart.push_back(node_group({t}, local));
      ++counter;
    }
    phases.push_back(std::move(first));
    phases.push_back(std::move(second));
  }
  return phases;
}

struct Entry {
  std::string name;
  TopologyFunction make;
};

// The built-in topologies and those that the process registered.
class Registry {
 public:
  static Registry& get() {
    static Registry registry;
    return registry;
  }

  void add(Entry entry) {
    const std::lock_guard lock(mutex_);
    if (find_unlocked(entry.name) != nullptr)
      throw UserError("there is a topology '" + entry.name + "' already: choose another name");
    entries_.push_back(std::move(entry));
  }

  TopologyFunction find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const Entry* entry = find_unlocked(name);
    return entry ? entry->make : nullptr;
  }

  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> list;
    for (const Entry& entry : entries_) list.push_back(entry.name);
    return list;
  }

 private:
  const Entry* find_unlocked(std::string_view name) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.name == name; });
    return found == entries_.end() ? nullptr : &*found;
  }

  mutable std::mutex mutex_;
  std::vector<Entry> entries_ = {{"complete", complete},
                                 {"ring", ring},
                                 {"one-peer-exp", one_peer_exp},
                                 {"alternating-exp-ring", alternating_exp_ring}};
};

void check_edge(const Edge& edge, std::size_t phase, int world_size, std::vector<bool>& seen) {
  const std::string where = "topology phase " + std::to_string(phase) + ": ";
  if (edge.ranks.empty()) throw UserError(where + "an edge has no ranks");
  if (!(edge.self_weight > 0.0 && edge.self_weight <= 1.0)) {
    throw UserError(where + "weight " + std::to_string(edge.self_weight) + " is not in (0, 1]");
  }
  for (int rank : edge.ranks) {
    if (rank < 0 || rank >= world_size) {
      throw UserError(where + "rank " + std::to_string(rank) + " does not exist: there " +
                      (world_size == 1 ? "is " : "are ") + counted(world_size, "worker") +
                      (world_size == 1 ? ", 0" : ", 0 to " + std::to_string(world_size - 1)));
    }
    if (seen[static_cast<std::size_t>(rank)]) {
      throw UserError(where + "rank " + std::to_string(rank) + " is in two edges");
    }
    seen[static_cast<std::size_t>(rank)] = true;
  }
}

std::vector<Phase> checked(std::vector<Phase> phases, int world_size) {
  for (Phase& phase : phases) {
    for (Edge& edge : phase) {
      std::sort(edge.ranks.begin(), edge.ranks.end());
      if (edge.self_weight == kEqualShares && !edge.ranks.empty())
        edge.self_weight = 1.0 / static_cast<double>(edge.ranks.size());
    }
  }
  validate_topology(phases, world_size);
  return phases;
}

std::vector<Phase> call(const TopologyFunction& make, int world_size, int local_world_size,
                        std::string_view local_setting) {
  try {
    return make(world_size, local_world_size);
  } catch (const WrongWorkersPerNode& error) {
    throw UserError(error.what() + ("\nSet " + std::string(local_setting)) +
                    " to another number of workers per node, or choose another topology.");
  }
}

}  // namespace

void register_topology(const std::string& name, TopologyFunction function) {
  if (name.empty()) throw UserError("a topology needs a name");
  if (!function) throw UserError("topology '" + name + "': the function is empty");
  Registry::get().add({name, std::move(function)});
}

std::vector<std::string> topology_names() { return Registry::get().names(); }

std::vector<Phase> make_topology(std::string_view name, int world_size, int local_world_size,
                                 std::string_view local_setting) {
  if (world_size < 1 || local_world_size < 1)
    throw UserError("a topology needs at least one worker");
  const TopologyFunction make = Registry::get().find(name);
  if (!make) {
    throw UserError("unknown topology '" + std::string(name) +
                    "'; valid: " + join(topology_names()));
  }
  std::vector<Phase> phases = call(make, world_size, local_world_size, local_setting);
  try {
    return checked(std::move(phases), world_size);
  } catch (const UserError& error) {
    throw UserError("'" + std::string(name) + "': " + error.what());
  }
}

Topology::Topology(std::string name)
    : function_([name = std::move(name)](int world_size, int local_world_size) {
        return make_topology(name, world_size, local_world_size);
      }) {}

Topology::Topology(std::vector<Phase> phases)
    : function_([phases = std::move(phases)](int, int) { return phases; }) {}

std::vector<Phase> Topology::phases(int world_size, int local_world_size) const {
  if (!function_) throw UserError("the topology's function is empty");
  return checked(function_(world_size, local_world_size), world_size);
}

void validate_topology(std::span<const Phase> phases, int world_size) {
  if (phases.empty()) throw UserError("a topology needs at least one phase");
  for (std::size_t p = 0; p < phases.size(); ++p) {
    std::vector<bool> seen(static_cast<std::size_t>(world_size));
    for (const Edge& edge : phases[p]) check_edge(edge, p, world_size, seen);
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end()) {
      throw UserError("topology phase " + std::to_string(p) + ": rank " +
                      std::to_string(missing - seen.begin()) + " is in no edge");
    }
  }
}

std::vector<std::vector<int>> connected_parts(std::span<const Phase> phases, int world_size) {
  // Union-find: every rank points at a smaller one that it is connected with, or at itself.
  std::vector<int> root(static_cast<std::size_t>(world_size));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int rank) {
    while (root[static_cast<std::size_t>(rank)] != rank)
      rank = root[static_cast<std::size_t>(rank)];
    return rank;
  };
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase) {
      for (int rank : edge.ranks) {
        const int a = find(edge.ranks.front());
        const int b = find(rank);
        root[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
      }
    }
  }
  std::map<int, std::vector<int>> parts;
  for (int rank = 0; rank < world_size; ++rank) parts[find(rank)].push_back(rank);
  std::vector<std::vector<int>> result;
  for (auto& [first, ranks] : parts) result.push_back(std::move(ranks));
  return result;
}

const Edge& edge_of(const Phase& phase, int rank) {
  for (const Edge& edge : phase) {
    if (std::find(edge.ranks.begin(), edge.ranks.end(), rank) != edge.ranks.end()) return edge;
  }
  throw std::logic_error("rank " + std::to_string(rank) + " is in no edge of this phase");
}

}  // namespace decent
