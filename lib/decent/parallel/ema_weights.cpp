#include "decent/parallel/ema_weights.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace decent {
namespace {

std::vector<at::Tensor> clones_of(const std::vector<Bucket>& buckets) {
  std::vector<at::Tensor> clones;
  for (const Bucket& bucket : buckets) clones.push_back(bucket.x.clone());
  return clones;
}

}  // namespace

EmaWeights::EmaWeights(double decay, const Replica& replica,
                       std::shared_ptr<Communicator> communicator, bool alike)
    : decay_(decay),
      replica_(replica),
      values_(clones_of(replica.buckets())),
      average_(std::move(communicator), values_, {}, {.alike = alike}) {}

void EmaWeights::update(std::int64_t step) {
  const at::NoGradGuard no_grad;
  for (std::size_t b = 0; b < values_.size(); ++b) {
    const at::Tensor& x = replica_.buckets()[b].x;
    if (step == 1) {
      values_[b].copy_(x);
    } else {
      values_[b].lerp_(x, 1 - decay_);
    }
  }
}

void EmaWeights::put_in_place(bool will_revert) {
  const at::NoGradGuard no_grad;
  if (will_revert) weights_ = clones_of(replica_.buckets());
  average_.average(/*keep_backup=*/will_revert, /*return_distance=*/false);
  for (std::size_t b = 0; b < values_.size(); ++b) replica_.buckets()[b].x.copy_(values_[b]);
}

void EmaWeights::take_out() {
  const at::NoGradGuard no_grad;
  average_.revert();
  for (std::size_t b = 0; b < values_.size(); ++b) replica_.buckets()[b].x.copy_(weights_[b]);
  weights_.clear();
}

at::Tensor EmaWeights::view(std::size_t bucket, std::size_t i) const {
  const Bucket& flat = replica_.buckets()[bucket];
  const at::Tensor& x = replica_.parameters()[flat.parameters[i]].second;
  return values_[bucket].as_strided(x.sizes(), x.strides(), flat.offsets[i]);
}

}  // namespace decent
