#include "decent/parallel/optimizer_states.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <numeric>

#include "decent/parallel/matrix_work.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

namespace {

Matrix matrix_of(const at::Tensor& parameter, const ParameterSettings& settings) {
  if (!settings.as_matrix || parameter.dim() != 2 || parameter.numel() == 0) return {};
  return {.rows = parameter.size(0),
          .cols = parameter.size(1),
          .by_columns = !parameter.is_contiguous()};
}

NamedTensors factors_of(const at::Tensor& parameter) {
  NamedTensors factors;
  for (const auto& [name, extents] : factor_extents(parameter.sizes()))
    factors.emplace_back(name, at::zeros(extents, parameter.options()));
  return factors;
}

// Bytes that the largest bucket fits into; buckets are updated one after another.
at::Tensor shared_array(const std::vector<Bucket>& buckets) {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : buckets)
    bytes = std::max(bytes, static_cast<std::int64_t>(bucket.x.nbytes()));
  return at::empty({bytes}, buckets.front().x.options().dtype(at::kByte));
}

}  // namespace

OptimizerStates::OptimizerStates(const Replica& replica, const TrainingOptions& options)
    : replica_(replica), update_(options.update), updates_(replica.parameters().size()) {
  for (const auto& [name, tensor] : replica.parameters()) {
    const ParameterSettings& its = settings_.emplace_back(options.settings_of(name, tensor));
    matrices_.push_back(matrix_of(tensor, its));
    factors_.push_back(is_factored() ? factors_of(tensor.detach()) : NamedTensors());
  }
  const at::Tensor shared = is_factored() ? shared_array(replica.buckets()) : at::Tensor();
  for (const Bucket& bucket : replica.buckets()) {
    Arrays& arrays = buckets_.emplace_back();
    for (std::size_t i = 0; update_ && i < update_->state_names().size(); ++i) {
      arrays.tensors.push_back(
          shared.defined() ? shared.narrow(0, 0, static_cast<std::int64_t>(bucket.x.nbytes()))
                                 .view(bucket.x.scalar_type())
                           : at::zeros_like(bucket.x));
      arrays.pointers.push_back(arrays.tensors.back().data_ptr());
    }
  }
}

FactoredWork OptimizerStates::factored_work(std::size_t index) const {
  return [this, index](const BucketStep& step, const BucketSlice& slice, const FactoredStep& how) {
    const Bucket& bucket = replica_.buckets()[index];
    const std::size_t p = bucket.parameters[bucket.parameter_at(slice.offset)];
    const at::Tensor x = replica_.parameters()[p].second.detach();
    take_factored_step(
        step, how,
        {.x = x,
         .grad = at::from_blob(const_cast<void*>(slice.grad), x.sizes(), x.strides(), x.options()),
         .direction =
             buckets_[index].tensors.front().as_strided(x.sizes(), x.strides(), slice.offset),
         .factors = factors_[p]});
  };
}

// How large the steps of a parameter are, in learning rates.
double OptimizerStates::step_scale(std::size_t parameter) const {
  const double of_its_shape = update_ ? update_->step_scale(matrices_[parameter]) : 1.0;
  return settings_[parameter].lr_scale * of_its_shape;
}

std::vector<std::vector<LrScaleFrom>> OptimizerStates::lr_scales() const {
  std::vector<std::vector<LrScaleFrom>> all;
  for (const Bucket& bucket : replica_.buckets()) {
    auto& scales = all.emplace_back();
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i)
      scales.push_back({bucket.offsets[i], step_scale(bucket.parameters[i])});
  }
  return all;
}

std::vector<BucketSlice> OptimizerStates::slices(std::size_t index) const {
  const Bucket& bucket = replica_.buckets()[index];
  std::vector<BucketSlice> slices;
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    const std::size_t p = bucket.parameters[i];
    slices.push_back({.offset = bucket.offsets[i],
                      .numel = replica_.parameters()[p].second.numel(),
                      .weight_decay = settings_[p].weight_decay,
                      .lr_scale = settings_[p].lr_scale,
                      .updates = updates_[p] + 1,
                      .matrix = matrices_[p]});
  }
  return slices;
}

void OptimizerStates::count_updates(std::size_t index, const std::vector<bool>& updated) {
  const Bucket& bucket = replica_.buckets()[index];
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    if (updated[i]) ++updates_[bucket.parameters[i]];
  }
}

void OptimizerStates::add_to(NamedTensors& state, std::size_t bucket, std::size_t i) const {
  const Bucket& flat = replica_.buckets()[bucket];
  const std::size_t p = flat.parameters[i];
  const auto& [name, x] = replica_.parameters()[p];
  for (const auto& [factor, values] : factors_[p])
    state.emplace_back(optimizer_tensor_name(name, factor), values);
  const std::vector<at::Tensor>& arrays = buckets_[bucket].tensors;
  for (std::size_t s = 0; !is_factored() && s < arrays.size(); ++s) {
    state.emplace_back(optimizer_tensor_name(name, update_->state_names()[s]),
                       arrays[s].as_strided(x.sizes(), x.strides(), flat.offsets[i]));
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

std::int64_t bytes_of_states(const BucketUpdate& update, const NamedTensors& trained,
                             const std::vector<std::int64_t>& bucket_bytes) {
  if (!update.is_factored()) {
    return std::ssize(update.state_names()) *
           std::accumulate(bucket_bytes.begin(), bucket_bytes.end(), std::int64_t{0});
  }
  std::int64_t bytes = *std::max_element(bucket_bytes.begin(), bucket_bytes.end());
  for (const auto& [parameter, tensor] : trained) {
    for (const auto& [factor, extents] : factor_extents(tensor.sizes()))
      bytes += c10::multiply_integers(extents) * static_cast<std::int64_t>(tensor.element_size());
  }
  return bytes;
}

}  // namespace decent
