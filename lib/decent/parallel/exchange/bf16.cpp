// Weights rounded to bfloat16, q(x). A worker mixes with what the rounded values differ by,
//
//     z_i = x_i + gamma sum_j W_ij (q(x_j) - q(x_i)),
//
// so that what one member of an edge gains the others lose: rounding does not move the average, as
// it would in sum_j W_ij q(x_j). Members of an edge of up to 4 send each other q(x); in larger ones
// an all-reduce of q(x) in float32 sends fewer bytes.

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>

#include "decent/parallel/exchange/all_of.h"
#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/pending_exchanges.h"

namespace decent {
namespace {

// To send n - 1 times 2 bytes is then no more than what an all-reduce of float32 sends,
// 8 (n - 1) / n.
constexpr int kMaxSendToAll = 4;

bool sends_to_all(int members) { return members <= kMaxSendToAll; }

class Bf16Exchange : public Exchange {
 public:
  explicit Bf16Exchange(const ExchangeSetup& setup)
      : world_(setup.world),
        buckets_(setup.buckets),
        meetings_(setup),
        rounded_(setup.buckets.size()),
        pending_(setup) {}

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    if (meeting.alone()) return;
    const auto bytes = sends_to_all(meeting.members())
                           ? 2 * buckets_[bucket].numel() * (meeting.members() - 1)
                           : static_cast<std::int64_t>(buckets_[bucket].nbytes());
    pending_.start(bucket, meeting, bytes, [&] { return send(bucket, meeting); });
  }

  Mixing wait(std::size_t bucket, double gamma) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    Mixing mixing = meeting->weights(gamma);
    mixing.self = 1;  // differences are received
    mixing.received = differences(bucket, *meeting).const_data_ptr();
    return mixing;
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const at::Tensor own = rounded_[bucket].own.to(buckets_[bucket].scalar_type());
    const at::Tensor mean = differences(bucket, *meeting).div(meeting->members() - 1);
    return Received{&meeting->edge, mean.add_(own)};
  }

  void settle() override { pending_.settle(); }
  void drop() override { pending_.drop(); }

 private:
  // Of one bucket.
  struct Rounded {
    at::Tensor own;                  // q(x_i), bfloat16
    std::vector<at::Tensor> others;  // q(x_j), bfloat16, in the order of the meeting's peers
    at::Tensor sum;                  // of q(x) over all members, of the type of x
    at::Tensor differences;          // sum over the other members of q(x_j) - q(x_i), likewise
  };

  Pending send(std::size_t bucket, const Meeting& meeting) {
    const at::Tensor& x = buckets_[bucket];
    Rounded& rounded = rounded_[bucket];
    if (!rounded.own.defined()) rounded.own = at::empty_like(x, x.options().dtype(at::kBFloat16));
    rounded.own.copy_(x);
    if (sends_to_all(meeting.members())) return send_to_all(bucket, meeting);
    if (!rounded.sum.defined()) rounded.sum = at::empty_like(x);
    rounded.sum.copy_(rounded.own);
    return meeting.group->all_reduce_sum(rounded.sum);
  }

  Pending send_to_all(std::size_t bucket, const Meeting& meeting) {
    auto& [own, others, sum, differences] = rounded_[bucket];
    while (others.size() < meeting.peers.size()) others.push_back(at::empty_like(own));
    const int tag = static_cast<int>(bucket);
    std::vector<Pending> works;
    for (std::size_t i = 0; i < meeting.peers.size(); ++i)
      works.push_back(world_->exchange(own, others[i], meeting.peers[i], tag));
    return all_of(std::move(works));
  }

  // Once the exchange has been waited for.
  const at::Tensor& differences(std::size_t bucket, const Meeting& meeting) {
    Rounded& rounded = rounded_[bucket];
    at::Tensor& result = rounded.differences;
    if (!result.defined()) result = at::empty_like(buckets_[bucket]);
    if (!sends_to_all(meeting.members()))
      return result.copy_(rounded.sum).sub_(rounded.own, meeting.members());
    result.zero_();
    // Each term is exactly the negative of what that peer computes for this worker.
    for (std::size_t i = 0; i < meeting.peers.size(); ++i)
      result.add_(rounded.others[i].to(result.scalar_type()).sub_(rounded.own));
    return result;
  }

  std::shared_ptr<Communicator> world_;
  std::vector<at::Tensor> buckets_;
  Meetings meetings_;
  std::vector<Rounded> rounded_;
  PendingExchanges pending_;
};

// What is sent, what comes from each other member or the sum, and the differences.
ExchangeCosts costs_of_bf16(int members) {
  if (members == 1) return {};
  const double n = members;
  if (sends_to_all(members)) return {.sent = (n - 1) / 2, .memory = 1.5 + 0.5 * (n - 1)};
  return {.sent = 2 * (n - 1) / n, .memory = 2.5};
}

}  // namespace

ExchangeMethod bf16_exchange() {
  return {.name = "bf16",
          .make = [](const ExchangeSetup& setup) { return std::make_unique<Bf16Exchange>(setup); },
          .costs = costs_of_bf16};
}

}  // namespace decent
