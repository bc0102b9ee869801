#pragma once
// Whom a worker meets after which step, and over which communicator.

#include <cstdint>
#include <memory>
#include <vector>

#include "decent/parallel/exchange/exchange.h"

namespace decent {

/// The phases of `topology` for `members` workers, with `local_world_size` of them per node, or
/// what the launcher says where that is 0. Throws UserError as Topology::phases and read_launch do.
std::vector<Phase> phases_of(const Topology& topology, int members, int local_world_size);

/// What this worker does in one phase.
struct Meeting {
  Edge edge = {};                                 // ranks of the world, this worker's among them
  std::vector<int> peers = {};                    // the other ranks, in that order
  std::shared_ptr<Communicator> group = nullptr;  // of more than two: exactly the edge's members

  int members() const { return static_cast<int>(edge.ranks.size()); }
  bool alone() const { return peers.empty(); }
  bool pair() const { return peers.size() == 1; }

  /// z = self * x + other * (sum of the other members' x) is x mixed with strength `gamma`; nothing
  /// received yet.
  Mixing weights(double gamma) const {
    return {.self = 1 - gamma + gamma * edge.weight,
            .other = gamma * (1 - edge.weight) / (members() - 1)};
  }
};

/// The meetings of one worker. The constructor makes and connects the groups that it needs, which
/// is collective over the members of each.
class Meetings {
 public:
  explicit Meetings(const ExchangeSetup& setup);

  /// Where the weights x^(step) go, step = 1, 2, ..: phase (step - 1) mod phases.
  const Meeting& after_step(std::int64_t step) const;

 private:
  std::vector<Meeting> by_phase_;
};

}  // namespace decent
