// Weights rounded to bfloat16, q(x). A worker mixes with the differences of rounded values,
//
//     z_i = x_i + gamma sum_j W_ij (q(x_j) - q(x_i)),
//
// so that one member of an edge gains what the others lose: rounding does not move the average, as
// it would in sum_j W_ij q(x_j). Members of an edge of up to 4 send each other q(x); in larger ones
// an all-reduce of q(x) in float32 sends fewer bytes.

#include <ATen/TensorOperators.h>

#include <array>

#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/outgoing_message.h"
#include "decent/parallel/exchange/pending_exchanges.h"
#include "decent/parallel/exchange/slice_mixing.h"
#include "decent/parallel/pending_work.h"

namespace decent {
namespace {

// Up to here n - 1 times 2 bytes are at most the 8 (n - 1) / n bytes of an all-reduce of float32.
constexpr int kMaxSendToAll = 4;

bool sends_to_all(int members) { return members <= kMaxSendToAll; }

class Bf16Exchange : public Exchange {
 public:
  explicit Bf16Exchange(const ExchangeSetup& setup)
      : communicator_(setup.communicator),
        slices_(setup.options.slices),
        meetings_(setup, kMaxSendToAll),
        buckets_(setup.buckets.size()),
        pending_(setup) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) buckets_[b].x = setup.buckets[b];
    for (int rank = 0; rank < communicator_->size(); ++rank)
      read_in_place_ = read_in_place_ || communicator_->reads_in_place(rank);
  }

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    OfBucket& own = buckets_[bucket];
    own.received.clear();
    if (pending_.gave_up()) {  // what was given up may still come
      own.rooms.clear();
      for (OutgoingMessage& message : own.messages) message.drop_memory();
    }
    own.slice = slice_after_step(own.x.numel(), step, slices_);
    if (meeting.alone() || own.slice.empty()) return;
    const auto bytes = sends_to_all(meeting.members())
                           ? 2 * own.slice.numel() * (meeting.members() - 1)
                           : own.slice.numel() * own.x.element_size();
    pending_.start(bucket, meeting, bytes, [&] { return send(bucket, meeting, step); });
  }

  Mixing wait(std::size_t bucket) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    Mixing mixing = meeting->weights(gamma());
    mixing.self = 1;  // differences are received
    const OfBucket& own = buckets_[bucket];
    return on_slice(own.x, own.slice, mixing, {{.values = differences(bucket, *meeting)}});
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const OfBucket& own = buckets_[bucket];
    const at::Tensor rounded = own.rounded.to(own.x.scalar_type());
    const at::Tensor mean = differences(bucket, *meeting).div(meeting->members() - 1).add_(rounded);
    return Received{&meeting->edge, with_slice(own.x, own.slice, mean)};
  }

  void settle() override { pending_.settle(); }
  void drop() override {
    pending_.drop();
    for (OfBucket& own : buckets_) own.received.clear();
  }

 private:
  // Arrays for the slice begin with its values.
  struct OfBucket {
    at::Tensor x = {};
    Range slice = {};         // the part that is exchanged
    at::Tensor rounded = {};  // q(x_i), bfloat16
    // q(x_j) of each other member, bfloat16, in the order of the meeting's peers; or one: the sum
    // of q(x) over all members, of the type of x.
    std::vector<std::shared_ptr<PendingReceived>> received = {};
    std::vector<at::Tensor> rooms = {};            // for values that cannot be read in place
    at::Tensor room_for_sum = {};                  // likewise
    at::Tensor room_for_rounded = {};              // if it is not sent itself
    at::Tensor differences = {};                   // sum of q(x_j) - q(x_i), of the type of x
    std::array<OutgoingMessage, 2> messages = {};  // in turn, if neighbours read them in place
    std::size_t turn = 0;

    at::Tensor of_slice(const at::Tensor& array) const { return array.narrow(0, 0, slice.numel()); }
  };

  // Memory for the message after `step`: [slice] of `type`.
  at::Tensor begin_message(OfBucket& own, std::int64_t step, at::ScalarType type) {
    if (read_in_place_) own.turn ^= 1;
    OutgoingMessage& message = own.messages[own.turn];
    message.begin(*communicator_, step, own.slice.numel() * at::elementSize(type), own.x);
    return message.bytes().view(type);
  }

  Pending send(std::size_t bucket, const Meeting& meeting, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    const at::Tensor x = part_of(own.x, own.slice);
    if (sends_to_all(meeting.members())) {
      own.rounded = begin_message(own, step, at::kBFloat16).copy_(x);
      return send_to_all(bucket, meeting);
    }
    own.rounded = room(own, own.room_for_rounded, at::kBFloat16).copy_(x);
    const at::Tensor addend = begin_message(own, step, own.x.scalar_type()).copy_(own.rounded);
    own.received.push_back(meeting.group->sum_views(addend, [&] { return addend; }));
    return all_of({own.received.front()});
  }

  Pending send_to_all(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    meeting.send_to_peers([&](std::size_t i) {
      if (i == own.rooms.size()) own.rooms.emplace_back();
      own.received.push_back(
          communicator_->exchange_views(own.rounded, meeting.peers[i], meeting.tag(bucket),
                                        [&] { return room(own, own.rooms[i], at::kBFloat16); }));
    });
    return all_of({own.received.begin(), own.received.end()});
  }

  at::Tensor room(const OfBucket& own, at::Tensor& memory, at::ScalarType type) const {
    if (!memory.defined()) memory = memory_for_slices(own.x, slices_, type);
    return own.of_slice(memory);
  }

  // Call it after the wait for the exchange.
  at::Tensor differences(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    at::Tensor result = room(own, own.differences, own.x.scalar_type());
    if (!sends_to_all(meeting.members())) {
      for (const auto& [begin, sum] : own.received.front()->parts())
        result.narrow(0, begin, sum.numel()).copy_(sum);
      return result.sub_(own.rounded, meeting.members());
    }
    result.zero_();
    // Each term is exactly the negative of what that peer computes for this worker.
    for (const auto& received : own.received) {
      const at::Tensor rounded = received->parts().front().values;
      result.add_(rounded.to(result.scalar_type()).sub_(own.rounded));
    }
    return result;
  }

  std::shared_ptr<Communicator> communicator_;
  std::int64_t slices_;
  Meetings meetings_;
  bool read_in_place_ = false;  // whether neighbours may still read what was sent last
  std::vector<OfBucket> buckets_;
  PendingExchanges pending_;
};

// Memory for the message, the message of each other member and the differences; or, with an
// all-reduce, for the message that becomes the sum, the rounded values and the differences. With
// shared memory there are two messages, and others' are read in place.
ExchangeCosts costs_of_bf16(int members) {
  if (members == 1) return {};
  const double n = members;
  if (sends_to_all(members))
    return {.sent = (n - 1) / 2, .memory = 1.5 + 0.5 * (n - 1), .memory_sharing = 2};
  return {.sent = 2 * (n - 1) / n, .memory = 2.5, .memory_sharing = 3.5};
}

}  // namespace

ExchangeMethod bf16_exchange() {
  return {.name = "bf16",
          .make = [](const ExchangeSetup& setup) { return std::make_unique<Bf16Exchange>(setup); },
          .costs = costs_of_bf16};
}

}  // namespace decent
