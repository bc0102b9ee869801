#include "decent/parallel/gossip.h"

#include <ATen/ops/empty_like.h>

#include <map>
#include <string>

#include "decent/comm/launch.h"
#include "decent/core/error.h"
#include "decent/parallel/watched_work.h"

namespace decent {

std::vector<Phase> phases_of(const Topology& topology, int world_size, int local_world_size) {
  if (local_world_size < 0) {
    throw UserError("local_world_size is " + std::to_string(local_world_size) +
                    ": it must be >= 1, or 0 for what the launcher says");
  }
  return topology.phases(world_size,
                         local_world_size > 0 ? local_world_size : read_launch().local_world_size);
}

Gossip::Gossip(std::shared_ptr<Communicator> world, const std::vector<Phase>& phases,
               std::size_t buckets, std::shared_ptr<Trace> trace)
    : world_(std::move(world)), trace_(std::move(trace)), flights_(buckets) {
  std::map<std::vector<int>, std::shared_ptr<Communicator>> groups;
  // Phases in order, so that no two workers wait for each other in different groups.
  for (const Phase& phase : phases) {
    const Edge& edge = edge_of(phase, world_->rank());
    Meeting meeting{
        .edge = edge, .members = static_cast<int>(edge.ranks.size()), .weight = edge.weight};
    if (meeting.members == 2) {
      meeting.peer = edge.ranks[0] == world_->rank() ? edge.ranks[1] : edge.ranks[0];
    } else if (meeting.members == world_->size()) {
      meeting.group = world_;
    } else if (meeting.members > 2) {
      auto& group = groups[edge.ranks];
      if (!group) group = world_->subgroup(edge.ranks);
      meeting.group = group;
    }
    meetings_.push_back(std::move(meeting));
  }
}

void Gossip::start(std::size_t bucket, const at::Tensor& x, std::int64_t phase) {
  const Meeting& meeting = meetings_[static_cast<std::size_t>(phase)];
  if (meeting.members == 1) return;
  Flight& flight = flights_[bucket];
  if (!flight.received.defined()) flight.received = at::empty_like(x);
  if (meeting.peer < 0) flight.received.copy_(x);
  TraceSpan span(trace_.get(), exchange_lane(bucket), "exchange",
                 {.bucket = static_cast<std::int64_t>(bucket),
                  .bytes = static_cast<std::int64_t>(x.nbytes()),
                  .peer = meeting.peer});
  flight.work = meeting.peer >= 0
                    ? world_->exchange(x, flight.received, meeting.peer, static_cast<int>(bucket))
                    : meeting.group->all_reduce_sum(flight.received);
  if (span.recording()) flight.work = watched(std::move(flight.work), std::move(span));
  flight.meeting = &meeting;
}

Mixing Gossip::mixing(const Flight& flight, double gamma) {
  const Meeting& meeting = *flight.meeting;
  const double others =
      gamma * (1 - meeting.weight) / (meeting.members - 1);  // W_ij of each other member
  double self = 1 - gamma + gamma * meeting.weight;
  // A group received the sum over all its members, this worker included.
  if (meeting.peer < 0) self -= others;
  return {.self = self, .other = others, .received = flight.received.const_data_ptr()};
}

Mixing Gossip::wait(std::size_t bucket, double gamma) {
  Flight& flight = flights_[bucket];
  if (flight.meeting == nullptr) return {};
  if (flight.work) flight.work->wait();
  flight.work.reset();
  const Mixing result = mixing(flight, gamma);
  flight.meeting = nullptr;
  return result;
}

std::optional<Received> Gossip::peek(std::size_t bucket, const at::Tensor& x) {
  Flight& flight = flights_[bucket];
  if (flight.meeting == nullptr) return std::nullopt;
  if (flight.work) flight.work->wait();
  flight.work.reset();
  const Meeting& meeting = *flight.meeting;
  if (meeting.peer >= 0) return Received{&meeting.edge, flight.received};
  return Received{&meeting.edge, flight.received.sub(x).div_(meeting.members - 1)};
}

void Gossip::settle() {
  for (Flight& flight : flights_) {
    if (flight.work) flight.work->wait();
    flight.work.reset();
  }
}

void Gossip::drop() {
  settle();
  for (Flight& flight : flights_) flight.meeting = nullptr;
}

}  // namespace decent
