#pragma once
// With whom a worker exchanges after which step, and over which communicator.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "decent/comm/lost_workers.h"
#include "decent/parallel/exchange/exchange.h"

namespace decent {

/// The phases of `topology` for `members` workers, `local_world_size` of them per node; 0: the
/// launcher's number. Throws UserError as Topology::phases and read_launch do, and for a negative
/// `local_world_size`.
std::vector<Phase> phases_of(const Topology& topology, int members, int local_world_size);

/// This worker's edge in one phase.
struct Meeting {
  Edge edge = {};                                 // with this worker's rank
  std::vector<int> peers = {};                    // the other ranks, in that order
  std::shared_ptr<Communicator> group = nullptr;  // of the members; null in edges of 1 and 2

  int phase = 0;   // its number, from 0
  int phases = 1;  // how many there are

  /// The tag of messages of `bucket`, for Communicator::exchange. Each phase has its own, so that
  /// nobody takes a message of an edge that was given up for one of another edge.
  int tag(std::size_t bucket) const { return static_cast<int>(bucket) * phases + phase; }

  int members() const { return static_cast<int>(edge.ranks.size()); }
  bool alone() const { return peers.empty(); }
  bool pair() const { return peers.size() == 1; }

  /// Calls send(i) for the i-th of `peers`, also behind a lost one: the others wait for their
  /// message. Throws GivenUp at the end if a peer is lost.
  template <typename Send>
  void send_to_peers(const Send& send) const {
    std::exception_ptr lost;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      try {
        send(i);
      } catch (const GivenUp&) {
        lost = std::current_exception();
      }
    }
    if (lost) std::rethrow_exception(lost);
  }

  /// The coefficients of z = self * x + other * (sum of the other members' x), which mixes with
  /// strength `gamma`. `received` is left null.
  Mixing weights(double gamma) const {
    return {.self = 1 - gamma + gamma * edge.self_weight,
            .other = gamma * (1 - edge.self_weight) / (members() - 1)};
  }
};

/// The meetings of one worker. The constructor makes and connects the groups for its edges of more
/// than two members, and, for edges of at most `most_in_pairs` members, connects it with each other
/// member for Communicator::exchange. Collective over the members of each edge.
class Meetings {
 public:
  explicit Meetings(const ExchangeSetup& setup, int most_in_pairs = 2);

  /// The meeting in which the weights x^(step) are exchanged, step = 1, 2, ..: that of phase
  /// floor((step - 1) / slices) mod phases, so that every slice meets everyone.
  const Meeting& after_step(std::int64_t step) const;

  std::int64_t phases() const { return std::ssize(by_phase_); }

 private:
  std::int64_t slices_;
  std::vector<Meeting> by_phase_;
};

}  // namespace decent
