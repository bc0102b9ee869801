// Weights as they are, also in float64. Neighbours that share memory read a copy, which the update
// writes in its own pass; the members of a larger edge add their copies up. Otherwise a pair sends
// its slice straight from the bucket and receives beside it, and larger edges all-reduce a copy.

#include <ATen/TensorOperators.h>

#include <array>
#include <cstring>

#include "decent/core/stream_copy.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/outgoing_message.h"
#include "decent/parallel/exchange/pending_exchanges.h"
#include "decent/parallel/exchange/slice_mixing.h"
#include "decent/parallel/pending_work.h"

namespace decent {
namespace {

// Copies of at least this size bypass the cache. A neighbour would not find them there a step
// later.
constexpr std::int64_t kStreamedBytes = 1 << 20;

void copy_in_cache(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

class Fp32Exchange : public Exchange {
 public:
  explicit Fp32Exchange(const ExchangeSetup& setup)
      : communicator_(setup.communicator),
        slices_(setup.options.slices),
        meetings_(setup),
        buckets_(setup.buckets.size()),
        pending_(setup) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) buckets_[b].x = setup.buckets[b];
  }

  PieceWork while_writing(std::size_t bucket, std::int64_t step) override {
    const Range slice = slice_after_step(buckets_[bucket].x.numel(), step, slices_);
    if (slice.empty() || !sends_copy(meetings_.after_step(step))) return nullptr;
    begin_copy(bucket, step, slice);
    return [this, bucket, slice](std::int64_t begin, std::int64_t end) {
      copy_piece(bucket, slice, {begin, end});
    };
  }

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    OfBucket& own = buckets_[bucket];
    own.received.reset();
    if (pending_.gave_up()) own.room.reset();  // what was given up may still come
    own.slice = slice_after_step(own.x.numel(), step, slices_);
    if (meeting.alone() || own.slice.empty()) return;
    pending_.start(bucket, meeting, own.slice.numel() * own.x.element_size(),
                   [&] { return send(bucket, meeting, step); });
  }

  Mixing wait(std::size_t bucket) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    const OfBucket& own = buckets_[bucket];
    Mixing mixing = meeting->weights(gamma());
    if (!meeting->pair()) mixing.self -= mixing.other;  // the sum includes this worker's own
    return on_slice(own.x, own.slice, mixing, own.received->parts());
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const OfBucket& own = buckets_[bucket];
    const at::Tensor received = whole_of(own.received->parts());
    if (meeting->pair()) return Received{&meeting->edge, with_slice(own.x, own.slice, received)};
    const at::Tensor mean = received.sub(part_of(own.x, own.slice)).div_(meeting->members() - 1);
    return Received{&meeting->edge, with_slice(own.x, own.slice, mean)};
  }

  void settle() override { pending_.settle(); }
  void drop() override {
    pending_.drop();
    for (OfBucket& own : buckets_) own.received.reset();
  }

 private:
  struct OfBucket {
    at::Tensor x = {};
    Range slice = {};                                     // the part that is exchanged
    at::Tensor room = {};                                 // for values that cannot be read in place
    std::shared_ptr<PendingReceived> received = nullptr;  // in a group: the sum over all members
    std::array<OutgoingMessage, 2> copies = {};           // the one sent last, and the next
    std::size_t last = 0;                                 // which was sent last

    OutgoingMessage& next() { return copies[last ^ 1]; }
  };

  bool sends_copy(const Meeting& meeting) const {
    if (meeting.alone()) return false;
    return meeting.pair() ? communicator_->reads_in_place(meeting.peers[0])
                          : meeting.group->reads_in_place(0);
  }

  void begin_copy(std::size_t bucket, std::int64_t step, const Range& slice) {
    OfBucket& own = buckets_[bucket];
    own.next().begin(*communicator_, step, slice.numel() * own.x.element_size(), own.x);
  }

  void copy_piece(std::size_t bucket, const Range& slice, const Range& piece) {
    OfBucket& own = buckets_[bucket];
    const Range part = overlap(piece, slice);
    const auto size = static_cast<std::int64_t>(own.x.element_size());
    const auto* const x = static_cast<const std::uint8_t*>(own.x.const_data_ptr());
    if (!part.empty()) {
      const auto copy = slice.numel() * size < kStreamedBytes ? &copy_in_cache : &stream_copy;
      copy(own.next().data() + (part.begin - slice.begin) * size, x + part.begin * size,
           static_cast<std::size_t>(part.numel() * size));
    }
    own.next().made(piece.numel());
  }

  // Completes the copy of x^(step) that is sent now, if the pass that wrote x^(step) has not.
  at::Tensor take_copy(std::size_t bucket, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    OutgoingMessage& copy = own.next();
    if (!copy.complete(step, own.x.numel())) {
      begin_copy(bucket, step, own.slice);
      cpu_kernels().in_pieces(own.x.numel(), [&](std::int64_t begin, std::int64_t end) {
        copy_piece(bucket, own.slice, {begin, end});
      });
    }
    copy.sent();
    own.last ^= 1;
    return copy.bytes().view(own.x.scalar_type());
  }

  Pending send(std::size_t bucket, const Meeting& meeting, std::int64_t step) {
    OfBucket& own = buckets_[bucket];
    const at::Tensor message =
        sends_copy(meeting) ? take_copy(bucket, step) : part_of(own.x, own.slice);
    const auto room = [&] {
      if (!own.room.defined()) own.room = memory_for_slices(own.x, slices_, own.x.scalar_type());
      return own.room.narrow(0, 0, own.slice.numel());
    };
    own.received = meeting.pair() ? communicator_->exchange_views(message, meeting.peers[0],
                                                                  meeting.tag(bucket), room)
                                  : meeting.group->sum_views(message, room);
    return all_of({own.received});
  }

  std::shared_ptr<Communicator> communicator_;
  std::int64_t slices_;
  Meetings meetings_;
  std::vector<OfBucket> buckets_;
  PendingExchanges pending_;
};

// A ring all-reduce sends 2 (n - 1) / n of what it adds up. Two copies lie in shared memory.
ExchangeCosts costs_of_fp32(int members) {
  if (members == 1) return {};
  const double n = members;
  return {.sent = members == 2 ? 1 : 2 * (n - 1) / n, .memory = 1, .memory_sharing = 2};
}

}  // namespace

ExchangeMethod fp32_exchange() {
  return {.name = "fp32",
          .make = [](const ExchangeSetup& setup) { return std::make_unique<Fp32Exchange>(setup); },
          .costs = costs_of_fp32};
}

}  // namespace decent
