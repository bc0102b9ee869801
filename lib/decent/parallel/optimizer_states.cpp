#include "decent/parallel/optimizer_states.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include "decent/parallel/named_tensors.h"

namespace decent {

namespace {

Matrix matrix_of(const at::Tensor& parameter, const ParameterSettings& settings) {
  if (!settings.as_matrix || parameter.dim() != 2 || parameter.numel() == 0) return {};
  return {.rows = parameter.size(0),
          .cols = parameter.size(1),
          .by_columns = !parameter.is_contiguous()};
}

}  // namespace

OptimizerStates::OptimizerStates(const Replica& replica, const TrainingOptions& options)
    : replica_(replica), update_(options.update), updates_(replica.parameters().size()) {
  for (const auto& [name, tensor] : replica.parameters()) {
    const ParameterSettings& its = settings_.emplace_back(options.settings_of(name, tensor));
    matrices_.push_back(matrix_of(tensor, its));
  }
  for (const Bucket& bucket : replica.buckets()) {
    Arrays& arrays = buckets_.emplace_back();
    for (std::size_t i = 0; update_ && i < update_->state_names().size(); ++i) {
      arrays.tensors.push_back(at::zeros_like(bucket.x));
      arrays.pointers.push_back(arrays.tensors.back().data_ptr());
    }
  }
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
  const std::vector<at::Tensor>& arrays = buckets_[bucket].tensors;
  for (std::size_t s = 0; s < arrays.size(); ++s) {
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

}  // namespace decent
