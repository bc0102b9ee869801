#include "decent/parallel/gossip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
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
               std::size_t buckets, ExchangeType type, std::shared_ptr<Trace> trace)
    : world_(std::move(world)), type_(type), trace_(std::move(trace)), flights_(buckets) {
  std::map<std::vector<int>, std::shared_ptr<Communicator>> groups;
  // Phases in order, so that no two workers wait for each other in different groups.
  for (const Phase& phase : phases) {
    const Edge& edge = edge_of(phase, world_->rank());
    Meeting meeting{
        .edge = edge, .members = static_cast<int>(edge.ranks.size()), .weight = edge.weight};
    for (const int rank : edge.ranks) {
      if (rank != world_->rank()) meeting.peers.push_back(rank);
    }
    if (meeting.members == 2) {
      meeting.peer = meeting.peers[0];
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
  TraceSpan span(trace_.get(), exchange_lane(bucket), "exchange",
                 {.bucket = static_cast<std::int64_t>(bucket),
                  .bytes = bytes_of(x, meeting),
                  .peer = meeting.peer});
  flight.work = send(bucket, x, meeting);
  if (span.recording()) flight.work = watched(std::move(flight.work), std::move(span));
  flight.meeting = &meeting;
}

// What an exchange sends; of an all-reduce, the size of the bucket.
std::int64_t Gossip::bytes_of(const at::Tensor& x, const Meeting& meeting) const {
  if (type_ == ExchangeType::bfloat16 && meeting.members <= RoundedBucket::kMostMembers)
    return 2 * x.numel() * (meeting.members - 1);
  return static_cast<std::int64_t>(x.nbytes());
}

Pending Gossip::send(std::size_t bucket, const at::Tensor& x, const Meeting& meeting) {
  Flight& flight = flights_[bucket];
  const int tag = static_cast<int>(bucket);
  if (type_ == ExchangeType::bfloat16) {
    return meeting.members <= RoundedBucket::kMostMembers
               ? flight.rounded.exchange(x, *world_, meeting.peers, tag)
               : flight.rounded.all_reduce(x, *meeting.group);
  }
  if (meeting.peer >= 0) return world_->exchange(x, flight.received, meeting.peer, tag);
  flight.received.copy_(x);
  return meeting.group->all_reduce_sum(flight.received);
}

// Waits, where nobody has yet.
void Gossip::finish(Flight& flight) {
  if (!flight.work) return;
  flight.work->wait();
  flight.work.reset();
  if (type_ == ExchangeType::bfloat16) flight.rounded.difference_into(flight.received);
}

Mixing Gossip::mixing(const Flight& flight, double gamma) const {
  const Meeting& meeting = *flight.meeting;
  const double others =
      gamma * (1 - meeting.weight) / (meeting.members - 1);  // W_ij of each other member
  double self = 1 - gamma + gamma * meeting.weight;
  // A group received the sum over all its members, this worker included.
  if (meeting.peer < 0) self -= others;
  if (type_ == ExchangeType::bfloat16) self = 1;  // received are differences
  return {.self = self, .other = others, .received = flight.received.const_data_ptr()};
}

Mixing Gossip::wait(std::size_t bucket, double gamma) {
  Flight& flight = flights_[bucket];
  if (flight.meeting == nullptr) return {};
  finish(flight);
  const Mixing result = mixing(flight, gamma);
  flight.meeting = nullptr;
  return result;
}

std::optional<Received> Gossip::peek(std::size_t bucket, const at::Tensor& x) {
  Flight& flight = flights_[bucket];
  if (flight.meeting == nullptr) return std::nullopt;
  finish(flight);
  const Meeting& meeting = *flight.meeting;
  if (type_ == ExchangeType::bfloat16) {
    const at::Tensor own = flight.rounded.own().to(x.scalar_type());
    return Received{&meeting.edge, flight.received.div(meeting.members - 1).add_(own)};
  }
  if (meeting.peer >= 0) return Received{&meeting.edge, flight.received};
  return Received{&meeting.edge, flight.received.sub(x).div_(meeting.members - 1)};
}

void Gossip::settle() {
  for (Flight& flight : flights_) finish(flight);
}

void Gossip::drop() {
  settle();
  for (Flight& flight : flights_) flight.meeting = nullptr;
}

}  // namespace decent
