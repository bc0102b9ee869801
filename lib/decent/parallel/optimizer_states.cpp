#include "decent/parallel/optimizer_states.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include "decent/parallel/tensor_names.h"

namespace decent {
namespace {

bool in_memory_order_of(const at::Tensor& parameter, const at::Tensor& grad) {
  for (std::int64_t d = 0; d < parameter.dim(); ++d) {
    if (parameter.size(d) != 1 && parameter.stride(d) != grad.stride(d)) return false;
  }
  return true;
}

// The update walks through memory in the order of the parameter.
void give_order_of(const at::Tensor& parameter, at::Tensor& grad) {
  if (in_memory_order_of(parameter, grad)) return;
  grad = at::empty_strided(parameter.sizes(), parameter.strides(), grad.options()).copy_(grad);
}

}  // namespace

OptimizerStates::OptimizerStates(const Replica& replica, const DecentralizedOptions& options)
    : replica_(replica),
      names_(options.update->state_names()),
      updates_(replica.parameters().size()) {
  for (const auto& [name, tensor] : replica.parameters())
    settings_.push_back(options.settings_of(name, tensor));
  for (const Bucket& bucket : replica.buckets()) {
    Arrays& arrays = buckets_.emplace_back();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      arrays.tensors.push_back(at::zeros_like(bucket.x));
      arrays.pointers.push_back(arrays.tensors.back().data_ptr());
    }
  }
}

std::vector<std::vector<LrScaleFrom>> OptimizerStates::lr_scales() const {
  std::vector<std::vector<LrScaleFrom>> all;
  for (const Bucket& bucket : replica_.buckets()) {
    auto& scales = all.emplace_back();
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i)
      scales.push_back({bucket.offsets[i], settings_[bucket.parameters[i]].lr_scale});
  }
  return all;
}

std::vector<BucketSlice> OptimizerStates::slices(std::size_t index) const {
  const Bucket& bucket = replica_.buckets()[index];
  std::vector<BucketSlice> slices;
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    const std::size_t p = bucket.parameters[i];
    const auto& [name, tensor] = replica_.parameters()[p];
    BucketSlice slice{.offset = bucket.offsets[i],
                      .numel = tensor.numel(),
                      .weight_decay = settings_[p].weight_decay,
                      .lr_scale = settings_[p].lr_scale};
    at::Tensor& grad = at::Tensor(tensor).mutable_grad();
    if (grad.defined()) {
      check_dense(name, grad);
      give_order_of(tensor, grad);
      slice.grad = grad.const_data_ptr();
      slice.updates = updates_[p] + 1;
    }
    slices.push_back(slice);
  }
  return slices;
}

void OptimizerStates::count_updates(std::size_t bucket) {
  for (const std::size_t p : replica_.buckets()[bucket].parameters) {
    if (replica_.parameters()[p].second.grad().defined()) ++updates_[p];
  }
}

void OptimizerStates::add_to(NamedTensors& state, std::size_t bucket, std::size_t i) const {
  const Bucket& flat = replica_.buckets()[bucket];
  const std::size_t p = flat.parameters[i];
  const auto& [name, x] = replica_.parameters()[p];
  for (std::size_t s = 0; s < names_.size(); ++s) {
    const at::Tensor& array = buckets_[bucket].tensors[s];
    state.emplace_back(optimizer_tensor_name(name, names_[s]),
                       array.as_strided(x.sizes(), x.strides(), flat.offsets[i]));
  }
  state.emplace_back(update_count_name(name), at::scalar_tensor(updates_[p], at::kLong));
}

void OptimizerStates::restore(
    const std::function<const at::Tensor&(const std::string& name)>& find) {
  for (std::size_t p = 0; p < updates_.size(); ++p) {
    const std::string& name = replica_.parameters()[p].first;
    updates_[p] = find(update_count_name(name)).item<std::int64_t>();
  }
}

}  // namespace decent
