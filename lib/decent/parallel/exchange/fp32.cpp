// Weights as they are, float64 ones too. A pair sends straight from the bucket and receives beside
// it; larger edges all-reduce a copy.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>

#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/pending_exchanges.h"

namespace decent {
namespace {

class Fp32Exchange : public Exchange {
 public:
  explicit Fp32Exchange(const ExchangeSetup& setup)
      : world_(setup.world),
        buckets_(setup.buckets),
        meetings_(setup),
        received_(setup.buckets.size()),
        pending_(setup) {}

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    if (meeting.alone()) return;
    if (!received_[bucket].defined()) received_[bucket] = at::empty_like(buckets_[bucket]);
    const auto bytes = static_cast<std::int64_t>(buckets_[bucket].nbytes());
    pending_.start(bucket, meeting, bytes, [&] { return send(bucket, meeting); });
  }

  Mixing wait(std::size_t bucket, double gamma) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    Mixing mixing = meeting->weights(gamma);
    if (!meeting->pair()) mixing.self -= mixing.other;  // the sum has this worker's own in it
    mixing.received = received_[bucket].const_data_ptr();
    return mixing;
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const at::Tensor& received = received_[bucket];
    if (meeting->pair()) return Received{&meeting->edge, received};
    return Received{&meeting->edge, received.sub(buckets_[bucket]).div_(meeting->members() - 1)};
  }

  void settle() override { pending_.settle(); }
  void drop() override { pending_.drop(); }

 private:
  Pending send(std::size_t bucket, const Meeting& meeting) {
    const at::Tensor& received = received_[bucket];
    if (meeting.pair()) {
      const int tag = static_cast<int>(bucket);
      return world_->exchange(buckets_[bucket], received, meeting.peers[0], tag);
    }
    received.copy_(buckets_[bucket]);
    return meeting.group->all_reduce_sum(received);
  }

  std::shared_ptr<Communicator> world_;
  std::vector<at::Tensor> buckets_;
  Meetings meetings_;
  std::vector<at::Tensor> received_;  // a pair: the peer's bucket; a group: the sum over all
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
