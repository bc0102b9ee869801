#include "decent/parallel/replica.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include "decent/parallel/exchange/exchange.h"

namespace decent {
namespace {

NamedTensors joined(NamedTensors first, const NamedTensors& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Bucket> checked_buckets(const NamedTensors& trained, const NamedTensors& others,
                                    double bucket_mb) {
  check_storage(trained, others);
  return build_buckets(trained, bucket_mb);
}

void broadcast_start(Communicator& communicator, const std::vector<Bucket>& buckets,
                     const NamedTensors& others) {
  const at::NoGradGuard no_grad;
  for (const Bucket& bucket : buckets) communicator.broadcast(bucket.x, 0)->wait();
  for (const auto& [name, tensor] : others) {
    const at::Tensor value = tensor.contiguous();  // a copy if the tensor has other strides
    communicator.broadcast(value, 0)->wait();
    if (!value.is_same(tensor)) tensor.copy_(value);
  }
}

bool in_memory_order_of(const at::Tensor& parameter, const at::Tensor& grad) {
  for (std::int64_t d = 0; d < parameter.dim(); ++d) {
    if (parameter.size(d) != 1 && parameter.stride(d) != grad.stride(d)) return false;
  }
  return true;
}

// Brings the gradient into the parameter's memory order, in which the update runs.
void give_order_of(const at::Tensor& parameter, at::Tensor& grad) {
  if (in_memory_order_of(parameter, grad)) return;
  grad = at::empty_strided(parameter.sizes(), parameter.strides(), grad.options()).copy_(grad);
}

}  // namespace

Replica::Replica(const NamedTensors& trained, const NamedTensors& untrained,
                 const NamedTensors& buffers, std::shared_ptr<Communicator> communicator,
                 const ReplicaOptions& options)
    : parameters_(trained),
      buckets_(checked_buckets(trained, joined(untrained, buffers), options.bucket_mb)),
      average_(communicator, flat_tensors(buckets_), buffers,
               {.average_buffers = options.average_buffers, .alike = options.copies_alike}) {
  for (const auto& [name, tensor] : parameters_) places_.push_back(tensor.const_data_ptr());
  broadcast_start(*communicator, buckets_, joined(untrained, buffers));
}

std::int64_t Replica::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : parameters_) count += tensor.numel();
  return count;
}

std::optional<std::string> Replica::misplaced() const {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const auto& [name, tensor] = parameters_[p];
    if (tensor.numel() > 0 && tensor.const_data_ptr() != places_[p]) return name;
  }
  return std::nullopt;
}

// The write goes through the bucket, which autograd does not connect with the parameter. If a later
// part of backward, or a graph that was built before, needs the old value, autograd must refuse and
// not silently use the new one.
void Replica::bump_version(std::size_t parameter) {
  parameters_[parameter].second.unsafeGetTensorImpl()->bump_version();
}

void Replica::release_gradient(std::size_t parameter) {
  parameters_[parameter].second.mutable_grad().reset();
}

void Replica::written(std::size_t bucket) {
  for (const std::size_t p : buckets_[bucket].parameters) bump_version(p);
}

void Replica::written() {
  for (std::size_t p = 0; p < parameters_.size(); ++p) bump_version(p);
}

std::optional<double> Replica::average(Exchange* exchange, bool will_revert, bool return_distance) {
  if (exchange != nullptr) exchange->settle();
  const std::optional<double> distance = average_.average(will_revert, return_distance);
  if (exchange != nullptr && !will_revert) exchange->drop();
  return distance;
}

BucketGradients own_gradients(const Replica& replica, std::size_t bucket,
                              std::vector<BucketSlice> slices) {
  BucketGradients gradients{.slices = std::move(slices), .present = {}};
  const std::vector<std::size_t>& parameters = replica.buckets()[bucket].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = replica.parameters()[parameters[i]];
    at::Tensor& grad = at::Tensor(tensor).mutable_grad();
    gradients.present.push_back(grad.defined());
    if (!grad.defined()) continue;
    check_dense(name, grad);
    give_order_of(tensor, grad);
    gradients.slices[i].grad = grad.const_data_ptr();
  }
  return gradients;
}

}  // namespace decent
