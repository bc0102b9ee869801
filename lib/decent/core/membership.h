#pragma once
// The ranks that train together, and one of them. Plans, exchanges, samplers and checkpoints take
// these values, so that none of them assumes that every rank that was started is a member.

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace decent {

/// The members during one part of a run. The place of a member is its index in `ranks`; topologies
/// and samplers count in places.
struct Membership {
  std::int64_t epoch = 0;  // how many memberships this run had before
  std::vector<int> ranks;  // as the launcher numbers them, ascending

  int size() const { return static_cast<int>(ranks.size()); }

  /// The place of `rank`. Throws std::logic_error if it is not a member.
  int place_of(int rank) const {
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      if (ranks[place] == rank) return static_cast<int>(place);
    }
    throw std::logic_error("worker " + std::to_string(rank) + " is not a member");
  }

  bool operator==(const Membership&) const = default;
};

/// The membership of all ranks 0 to workers - 1.
inline Membership everyone(int workers) {
  Membership membership;
  membership.ranks.resize(static_cast<std::size_t>(workers));
  std::iota(membership.ranks.begin(), membership.ranks.end(), 0);
  return membership;
}

/// One of the workers that train together, as far as it knows before they are connected.
struct Member {
  Membership workers = everyone(1);
  int rank = 0;        // as the launcher numbers it
  int local_size = 1;  // how many of them are on this machine
  // By rank: the lowest rank on the same machine, as far as the system tells. Empty until the
  // workers have met.
  std::vector<int> machines = {};
  // By rank: the name of the machine. Empty until the workers have met.
  std::vector<std::string> hosts = {};

  int size() const { return workers.size(); }
  /// Throws std::logic_error if the rank is not a member.
  int place() const { return workers.place_of(rank); }
};

}  // namespace decent
