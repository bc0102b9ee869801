#pragma once
// Which workers train together: a value that exchanges, samplers and checkpoints are given, so that
// none of them assumes that it is everyone who was started.

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace decent {

/// The workers of one stretch of a run. Places are 0, 1, .. in the order of `ranks`; topologies and
/// samplers count in places.
struct Membership {
  std::int64_t epoch = 0;  // how many memberships of this run came before
  std::vector<int> ranks;  // as the launcher numbers them, ascending

  int size() const { return static_cast<int>(ranks.size()); }

  /// The place of `rank`. Throws std::logic_error where it is not a member.
  int place_of(int rank) const {
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      if (ranks[place] == rank) return static_cast<int>(place);
    }
    throw std::logic_error("worker " + std::to_string(rank) + " is not a member");
  }

  bool operator==(const Membership&) const = default;
};

/// The membership of a run in which all `workers` that were started take part.
inline Membership everyone(int workers) {
  Membership membership;
  membership.ranks.resize(static_cast<std::size_t>(workers));
  std::iota(membership.ranks.begin(), membership.ranks.end(), 0);
  return membership;
}

}  // namespace decent
