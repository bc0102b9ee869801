#include "decent/parallel/rounded_bucket.h"

#include <ATen/ops/empty_like.h>

#include <memory>
#include <utility>

namespace decent {
namespace {

class AllOf : public PendingWork {
 public:
  explicit AllOf(std::vector<Pending> works) : works_(std::move(works)) {}
  void wait() override {
    for (const Pending& work : works_) work->wait();
  }
  void wait_on_host() override {
    for (const Pending& work : works_) work->wait_on_host();
  }
  bool done() override {
    for (const Pending& work : works_) {
      if (!work->done()) return false;
    }
    return true;
  }

 private:
  std::vector<Pending> works_;
};

}  // namespace

void RoundedBucket::round(const at::Tensor& x) {
  if (!own_.defined()) own_ = at::empty_like(x, x.options().dtype(at::kBFloat16));
  own_.copy_(x);
}

Pending RoundedBucket::exchange(const at::Tensor& x, Communicator& world,
                                const std::vector<int>& peers, int tag) {
  round(x);
  members_ = 0;
  while (others_.size() < peers.size()) others_.push_back(at::empty_like(own_));
  others_.resize(peers.size());
  std::vector<Pending> works;
  for (std::size_t i = 0; i < peers.size(); ++i)
    works.push_back(world.exchange(own_, others_[i], peers[i], tag));
  return std::make_unique<AllOf>(std::move(works));
}

Pending RoundedBucket::all_reduce(const at::Tensor& x, Communicator& group) {
  round(x);
  members_ = group.size();
  if (!sum_.defined()) sum_ = at::empty_like(x);
  sum_.copy_(own_);
  return group.all_reduce_sum(sum_);
}

void RoundedBucket::difference_into(const at::Tensor& difference) const {
  if (members_ > 0) {
    difference.copy_(sum_).sub_(own_, members_);
    return;
  }
  difference.zero_();
  // Each term is exactly the negative of what that peer computes for this worker.
  for (const at::Tensor& other : others_)
    difference.add_(other.to(difference.scalar_type()).sub_(own_));
}

}  // namespace decent
