// Weights rounded to bfloat16, q(x). A worker mixes with what the rounded values differ by,
//
//     z_i = x_i + gamma sum_j W_ij (q(x_j) - q(x_i)),
//
// so that what one member of an edge gains the others lose: rounding does not move the average, as
// it would in sum_j W_ij q(x_j). Members of an edge of up to 4 send each other q(x); in larger ones
// an all-reduce of q(x) in float32 sends fewer bytes.

#include <ATen/TensorOperators.h>

#include "decent/parallel/exchange/all_of.h"
#include "decent/parallel/exchange/built_in.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/pending_exchanges.h"
#include "decent/parallel/exchange/slice_mixing.h"

namespace decent {
namespace {

// To send n - 1 times 2 bytes is then no more than what an all-reduce of float32 sends,
// 8 (n - 1) / n.
constexpr int kMaxSendToAll = 4;

bool sends_to_all(int members) { return members <= kMaxSendToAll; }

class Bf16Exchange : public Exchange {
 public:
  explicit Bf16Exchange(const ExchangeSetup& setup)
      : world_(setup.world), slices_(setup.slices), meetings_(setup), pending_(setup) {
    for (const at::Tensor& x : setup.buckets) buckets_.push_back({.x = x});
  }

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    OfBucket& own = buckets_[bucket];
    own.slice = slice_after_step(own.x.numel(), step, slices_);
    if (meeting.alone() || own.slice.empty()) return;
    const auto bytes = sends_to_all(meeting.members())
                           ? 2 * own.slice.numel() * (meeting.members() - 1)
                           : own.slice.numel() * own.x.element_size();
    pending_.start(bucket, meeting, bytes, [&] { return send(bucket, meeting); });
  }

  Mixing wait(std::size_t bucket, double gamma) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    Mixing mixing = meeting->weights(gamma);
    mixing.self = 1;  // differences are received
    mixing.received = differences(bucket, *meeting).const_data_ptr();
    return on_slice(buckets_[bucket].x, buckets_[bucket].slice, mixing);
  }

  std::optional<Received> peek(std::size_t bucket) override {
    const Meeting* meeting = pending_.wait(bucket);
    if (meeting == nullptr) return std::nullopt;
    const OfBucket& own = buckets_[bucket];
    const at::Tensor rounded = own.of_slice(own.rounded).to(own.x.scalar_type());
    const at::Tensor mean = differences(bucket, *meeting).div(meeting->members() - 1).add_(rounded);
    return Received{&meeting->edge, with_slice(own.x, own.slice, mean)};
  }

  void settle() override { pending_.settle(); }
  void drop() override { pending_.drop(); }

 private:
  // Arrays for the slice begin with its values and are as long as the longest slice needs.
  struct OfBucket {
    at::Tensor x;
    Range slice = {};                     // that is exchanged
    at::Tensor rounded = {};              // q(x_i), bfloat16
    std::vector<at::Tensor> others = {};  // q(x_j), bfloat16, in the order of the meeting's peers
    at::Tensor sum = {};                  // of q(x) over all members, of the type of x
    at::Tensor differences = {};          // sum over the other members of q(x_j) - q(x_i), likewise

    at::Tensor of_slice(const at::Tensor& array) const { return array.narrow(0, 0, slice.numel()); }
  };

  Pending send(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    make_if_new(own, own.rounded, at::kBFloat16);
    own.of_slice(own.rounded).copy_(part_of(own.x, own.slice));
    if (sends_to_all(meeting.members())) return send_to_all(bucket, meeting);
    make_if_new(own, own.sum, own.x.scalar_type());
    const at::Tensor sum = own.of_slice(own.sum);
    sum.copy_(own.of_slice(own.rounded));
    return meeting.group->all_reduce_sum(sum);
  }

  Pending send_to_all(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    std::vector<Pending> works;
    for (std::size_t i = 0; i < meeting.peers.size(); ++i) {
      if (i == own.others.size()) make_if_new(own, own.others.emplace_back(), at::kBFloat16);
      works.push_back(world_->exchange(own.of_slice(own.rounded), own.of_slice(own.others[i]),
                                       meeting.peers[i], static_cast<int>(bucket)));
    }
    return all_of(std::move(works));
  }

  void make_if_new(const OfBucket& own, at::Tensor& array, at::ScalarType type) const {
    if (!array.defined()) array = memory_for_slices(own.x, slices_, type);
  }

  // Once the exchange has been waited for.
  at::Tensor differences(std::size_t bucket, const Meeting& meeting) {
    OfBucket& own = buckets_[bucket];
    make_if_new(own, own.differences, own.x.scalar_type());
    const at::Tensor rounded = own.of_slice(own.rounded);
    at::Tensor result = own.of_slice(own.differences);
    if (!sends_to_all(meeting.members()))
      return result.copy_(own.of_slice(own.sum)).sub_(rounded, meeting.members());
    result.zero_();
    // Each term is exactly the negative of what that peer computes for this worker.
    for (std::size_t i = 0; i < meeting.peers.size(); ++i)
      result.add_(own.of_slice(own.others[i]).to(result.scalar_type()).sub_(rounded));
    return result;
  }

  std::shared_ptr<Communicator> world_;
  std::int64_t slices_;
  Meetings meetings_;
  std::vector<OfBucket> buckets_;
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
