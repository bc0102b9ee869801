#include "decent/parallel/exchange/meetings.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "decent/comm/launch.h"
#include "decent/core/error.h"

namespace decent {

std::vector<Phase> phases_of(const Topology& topology, int members, int local_world_size) {
  if (local_world_size < 0) {
    throw UserError("local_world_size is " + std::to_string(local_world_size) +
                    ": it must be >= 1, or 0 for what the launcher says");
  }
  return topology.phases(members,
                         local_world_size > 0 ? local_world_size : read_launch().local_world_size);
}

Meetings::Meetings(const ExchangeSetup& setup, int most_in_pairs) : slices_(setup.options.slices) {
  Communicator& communicator = *setup.communicator;
  std::map<std::vector<int>, std::shared_ptr<Communicator>> groups;
  std::set<int> in_pairs;
  // Phases in order, so that no two workers wait for each other in different groups.
  for (const Phase& phase : setup.phases) {
    Meeting meeting{.edge = edge_of(phase, communicator.rank()),
                    .phase = static_cast<int>(by_phase_.size()),
                    .phases = static_cast<int>(setup.phases.size())};
    for (const int rank : meeting.edge.ranks) {
      if (rank != communicator.rank()) meeting.peers.push_back(rank);
    }
    if (meeting.members() > 2 && meeting.members() == communicator.size()) {
      meeting.group = setup.communicator;
    } else if (meeting.members() > 2) {
      auto& group = groups[meeting.edge.ranks];
      if (!group) group = communicator.subgroup(meeting.edge.ranks);
      meeting.group = group;
    }
    if (meeting.members() <= most_in_pairs)
      in_pairs.insert(meeting.peers.begin(), meeting.peers.end());
    by_phase_.push_back(std::move(meeting));
  }
  communicator.connect_pairs({in_pairs.begin(), in_pairs.end()});
}

const Meeting& Meetings::after_step(std::int64_t step) const {
  return by_phase_[static_cast<std::size_t>((step - 1) / slices_ % phases())];
}

}  // namespace decent
