// What training goes on from: the part of DecentralizedParameters that checkpoints need.

#include <ATen/ops/scalar_tensor.h>

#include <map>

#include "decent/core/error.h"
#include "decent/parallel/decentralized_parameters.h"

namespace decent {
namespace {

const at::Tensor& find(const std::map<std::string, at::Tensor>& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    throw UserError("the state to go on from lacks '" + name + "'; training_state() names all");
  return found->second;
}

// What Exchange::state() gave, under its own names.
NamedTensors exchange_part(const NamedTensors& state) {
  constexpr std::string_view kPrefix = "exchange.";
  NamedTensors part;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(kPrefix)) part.emplace_back(name.substr(kPrefix.size()), tensor);
  }
  return part;
}

}  // namespace

NamedTensors DecentralizedParameters::training_state() const {
  NamedTensors state;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
      const Parameter& parameter = parameters_[bucket.parameters[i]];
      const at::Tensor& x = parameter.tensor;
      state.emplace_back("model." + parameter.name, x.detach());
      const std::string prefix = "optimizer." + parameter.name + ".";
      for (std::size_t s = 0; s < states_[b].tensors.size(); ++s) {
        state.emplace_back(
            prefix + options_.update->state_names()[s],
            states_[b].tensors[s].as_strided(x.sizes(), x.strides(), bucket.offsets[i]));
      }
      state.emplace_back(prefix + "step", at::scalar_tensor(parameter.updates, at::kLong));
    }
  }
  if (scaler_) {
    state.emplace_back("scaler.scale", at::scalar_tensor(scaler_->scale(), at::kFloat));
    state.emplace_back("scaler.growth_tracker",
                       at::scalar_tensor(scaler_->growth_tracker(), at::kLong));
  }
  for (const auto& [name, tensor] : exchange_->state()) {
    state.emplace_back("exchange." + name, tensor);
  }
  return state;
}

void DecentralizedParameters::continue_from(std::int64_t step, const NamedTensors& state) {
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  for (Parameter& parameter : parameters_) {
    parameter.updates = find(by_name, "optimizer." + parameter.name + ".step").item<std::int64_t>();
  }
  if (scaler_) {
    scaler_->restore(find(by_name, "scaler.scale").item<double>(),
                     find(by_name, "scaler.growth_tracker").item<std::int64_t>());
  }
  exchange_->drop();
  exchange_->restore(exchange_part(state));
  step_ = step;
  if (step == 0) return;  // the first step does not mix
  for (std::size_t b = 0; b < buckets_.size(); ++b) exchange_->start(b, step);
}

}  // namespace decent
