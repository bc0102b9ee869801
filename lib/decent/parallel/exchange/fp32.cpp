// Weights as they are, float64 ones too. A pair sends its slice straight from the bucket and
// receives beside it; larger edges all-reduce a copy.

#include <ATen/TensorOperators.h>

#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/pending_exchanges.h"
#include "decent/parallel/exchange/slice_mixing.h"

namespace decent {
namespace {

class Fp32Exchange : public Exchange {
 public:
  explicit Fp32Exchange(const ExchangeSetup& setup)
      : world_(setup.world), slices_(setup.slices), meetings_(setup), pending_(setup) {
    for (const at::Tensor& x : setup.buckets) buckets_.push_back({.x = x});
  }

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    OfBucket& own = buckets_[bucket];
    own.slice = slice_after_step(own.x.numel(), step, slices_);
    if (meeting.alone() || own.slice.empty()) return;
    if (!own.memory.defined()) own.memory = memory_for_slices(own.x, slices_, own.x.scalar_type());
    own.received = own.memory.narrow(0, 0, own.slice.numel());
    pending_.start(bucket, meeting, static_cast<std::int64_t>(own.received.nbytes()),
                   [&] { return send(bucket, meeting); });
  }

  Mixing wait(std::size_t bucket, double gamma) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    const OfBucket& own = buckets_[bucket];
    Mixing mixing = meeting->weights(gamma);
    if (!meeting->pair()) mixing.self -= mixing.other;  // the sum has this worker's own in it
    mixing.received = own.received.const_data_ptr();
    return on_slice(own.x, own.slice, mixing);
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const auto& [x, slice, memory, received] = buckets_[bucket];
    if (meeting->pair()) return Received{&meeting->edge, with_slice(x, slice, received)};
    const at::Tensor mean = received.sub(part_of(x, slice)).div_(meeting->members() - 1);
    return Received{&meeting->edge, with_slice(x, slice, mean)};
  }

  void settle() override { pending_.settle(); }
  void drop() override { pending_.drop(); }

 private:
  struct OfBucket {
    at::Tensor x;
    Range slice = {};          // that is exchanged
    at::Tensor memory = {};    // for what is received
    at::Tensor received = {};  // of the slice; a pair: the peer's; a group: the sum over all
  };

  Pending send(std::size_t bucket, const Meeting& meeting) {
    const auto& [x, slice, memory, received] = buckets_[bucket];
    const at::Tensor own = part_of(x, slice);
    if (meeting.pair())
      return world_->exchange(own, received, meeting.peers[0], static_cast<int>(bucket));
    received.copy_(own);
    return meeting.group->all_reduce_sum(received);
  }

  std::shared_ptr<Communicator> world_;
  std::int64_t slices_;
  Meetings meetings_;
  std::vector<OfBucket> buckets_;
  PendingExchanges pending_;
};

// A ring all-reduce sends 2 (n - 1) / n of what it adds up.
ExchangeCosts costs_of_fp32(int members) {
  if (members == 1) return {};
  const double n = members;
  return {.sent = members == 2 ? 1 : 2 * (n - 1) / n, .memory = 1};
}

}  // namespace

ExchangeMethod fp32_exchange() {
  return {.name = "fp32",
          .make = [](const ExchangeSetup& setup) { return std::make_unique<Fp32Exchange>(setup); },
          .costs = costs_of_fp32};
}

}  // namespace decent
