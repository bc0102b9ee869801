#include "decent/parallel/decent_optim_wrapper.h"

#include <ATen/core/grad_mode.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "decent/core/error.h"
#include "decent/optim/bucket_update.h"
#include "decent/parallel/decentralized_parameters.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/replica.h"
#include "decent/parallel/storage.h"

namespace decent {
namespace {

// Optimizers know no names, so a parameter is named by its place.
std::string name_of(std::size_t group, std::size_t parameter) {
  return "param_groups[" + std::to_string(group) + "].params[" + std::to_string(parameter) + "]";
}

NamedTensors parameters_of(const torch::optim::Optimizer& optimizer) {
  NamedTensors result;
  const auto& groups = optimizer.param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& tensors = groups[g].params();
    for (std::size_t p = 0; p < tensors.size(); ++p) result.emplace_back(name_of(g, p), tensors[p]);
  }
  return result;
}

void check_arguments(const torch::optim::Optimizer* optimizer, const Communicator* communicator) {
  const std::string who = "DecentOptimWrapper: ";
  if (optimizer == nullptr) throw UserError(who + "the optimizer is null");
  if (communicator == nullptr)
    throw UserError(who + "the communicator is null; make_single_worker() is that of one worker");
  if (dynamic_cast<const torch::optim::LBFGS*>(optimizer) != nullptr) {
    throw UserError(who +
                    "LBFGS cannot be wrapped: it evaluates its closure several times within a step "
                    "and moves the weights in between, while a step here is one gradient, one "
                    "update and one exchange with the neighbours.\n"
                    "Wrap an optimizer with one gradient per step: SGD, Adam, AdamW, RMSprop, "
                    "Adagrad.");
  }
}

void check_how_to_exchange(const torch::optim::Optimizer& optimizer,
                           const DecentOptimWrapperOptions& options) {
  options.exchange.check();
  if (!options.exchange.needs_near_copies()) return;
  if (!options.schedule) {
    throw UserError(
        "DecentOptimWrapper: a modulo exchange needs options.schedule, the learning rate of each "
        "step: its grid follows it");
  }
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer) != nullptr ||
      dynamic_cast<const torch::optim::RMSprop*>(&optimizer) != nullptr) {
    throw UserError(
        "DecentOptimWrapper: a modulo exchange needs an optimizer whose steps are bounded by the "
        "learning rate, which its grid follows: Adam or AdamW, not SGD or RMSprop. Use the "
        "exchange bf16, or slices");
  }
}

void check_listed_once(const NamedTensors& parameters) {
  std::unordered_set<const void*> seen;
  for (const auto& [name, tensor] : parameters) {
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    throw UserError("DecentOptimWrapper: the optimizer lists the tensor at " + name +
                    " twice, and would update it twice in a step: list every parameter once");
  }
}

// The bits of a parameter's first, middle and last element. A write through .data(), as of torch's
// SGD, does not change the version, but an optimizer's step changes these bits. On a GPU, reading
// each would wait for it, so there only the version counts.
std::uint64_t trace_of(const at::Tensor& parameter) {
  std::uint64_t trace = 0;
  if (!parameter.is_cpu()) return trace;
  const auto bytes = static_cast<std::size_t>(parameter.element_size());
  const auto* data = static_cast<const char*>(parameter.const_data_ptr());
  const auto numel = static_cast<std::size_t>(parameter.numel());
  if (numel == 0) return trace;
  for (const std::size_t element : {std::size_t{0}, numel / 2, numel - 1}) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, data + element * bytes, bytes);
    trace = trace * 0x9E3779B97F4A7C15U + bits;
  }
  return trace;
}

}  // namespace

DecentOptimWrapper::DecentOptimWrapper(std::shared_ptr<torch::optim::Optimizer> optimizer,
                                       Topology topology,
                                       std::shared_ptr<Communicator> communicator,
                                       double bucket_cap_mb, int local_world_size)
    : DecentOptimWrapper(std::move(optimizer), std::move(topology), std::move(communicator),
                         {.bucket_cap_mb = bucket_cap_mb, .local_world_size = local_world_size}) {}

DecentOptimWrapper::DecentOptimWrapper(std::shared_ptr<torch::optim::Optimizer> optimizer,
                                       Topology topology,
                                       std::shared_ptr<Communicator> communicator,
                                       DecentOptimWrapperOptions options)
    : optimizer_(std::move(optimizer)), communicator_(std::move(communicator)) {
  check_arguments(optimizer_.get(), communicator_.get());
  check_how_to_exchange(*optimizer_, options);
  const std::vector<Phase> phases =
      phases_of(topology, communicator_->size(), options.local_world_size);
  const NamedTensors all = parameters_of(*optimizer_);
  check_listed_once(all);
  const NamedTensors trained = trained_part(all);
  if (trained.empty()) {
    throw UserError(
        "DecentOptimWrapper: the optimizer has no parameter to train: none requires a gradient");
  }
  replica_ = std::make_unique<Replica>(trained, untrained_part(all), NamedTensors{}, communicator_,
                                       ReplicaOptions{.bucket_mb = options.bucket_cap_mb});
  for (const auto& [name, tensor] : trained) known_.insert(tensor.unsafeGetTensorImpl());
  exchange_ = options.exchange.make({.communicator = communicator_,
                                     .phases = phases,
                                     .buckets = flat_tensors(replica_->buckets()),
                                     .schedule = options.schedule});
}

DecentOptimWrapper::~DecentOptimWrapper() = default;

at::Tensor DecentOptimWrapper::step(const Closure& closure) {
  if (replica_->averaged()) {
    throw std::logic_error(
        "step() on the global average: call revert_global_avg() first, or "
        "global_avg(false) to continue from it");
  }
  at::Tensor loss;
  if (closure) {
    // The closure is not passed to the optimizer, which would call it after the mixing.
    const at::AutoGradMode with_grad(true);
    loss = closure();
  }
  check_parameters();
  check_unwritten();
  mix_buckets();
  optimizer_->step();
  ++steps_;
  start_exchange();
  return loss;
}

// Finds parameters that would silently be updated but not averaged.
void DecentOptimWrapper::check_parameters() const {
  const auto& groups = optimizer_->param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t p = 0; p < groups[g].params().size(); ++p) {
      const at::Tensor& tensor = groups[g].params()[p];
      if (!tensor.requires_grad() || known_.contains(tensor.unsafeGetTensorImpl())) continue;
      throw std::logic_error("the optimizer's " + name_of(g, p) +
                             " was added or unfrozen after DecentOptimWrapper was made, and is not "
                             "averaged: add all groups, and let all parameters that will be "
                             "trained require a gradient, before making it; or make a new one "
                             "after global_avg(false)");
    }
  }
  if (const auto name = replica_->misplaced()) {
    throw std::logic_error("the optimizer's " + *name +
                           " got other memory after DecentOptimWrapper was made (set_data, "
                           "torch::load, Module::to), and is not averaged: load and convert "
                           "before, or write in place (tensor.copy_) after global_avg(false)");
  }
}

// Needed because a pair sends straight from the bucket.
void DecentOptimWrapper::check_unwritten() const {
  for (std::size_t p = 0; p < written_.size(); ++p) {
    const auto& [name, tensor] = replica_->parameters()[p];
    if (written_[p] == Written{tensor._version(), trace_of(tensor)}) continue;
    throw std::logic_error("the optimizer's " + name +
                           " was written after the last step(), while neighbours may be reading "
                           "it: write weights only after global_avg(false), and step the "
                           "optimizer through DecentOptimWrapper alone");
  }
}

void DecentOptimWrapper::mix_buckets() {
  for (std::size_t b = 0; b < bucket_count(); ++b) {
    const Bucket& bucket = replica_->buckets()[b];
    const Mixing mixing = exchange_->wait(b);
    mix(bucket.x.data_ptr(), bucket.x.numel(), scalar_of(bucket.x), mixing, kernels_of(bucket.x));
  }
  weights_changed();
}

void DecentOptimWrapper::start_exchange() {
  for (std::size_t b = 0; b < bucket_count(); ++b) exchange_->start(b, steps_);
  if (communicator_->size() > 1) remember_writes();
}

void DecentOptimWrapper::weights_changed() {
  replica_->written();
  if (!written_.empty()) remember_writes();
}

void DecentOptimWrapper::remember_writes() {
  written_.clear();
  for (const auto& [name, tensor] : replica_->parameters())
    written_.push_back({tensor._version(), trace_of(tensor)});
}

std::optional<double> DecentOptimWrapper::wrap_share() const { return exchange_->wrap_share(); }

std::size_t DecentOptimWrapper::bucket_count() const { return replica_->buckets().size(); }

void DecentOptimWrapper::zero_grad(bool set_to_none) { optimizer_->zero_grad(set_to_none); }

std::optional<double> DecentOptimWrapper::global_avg(bool may_revert, bool return_distance) {
  check_parameters();
  if (may_revert && !replica_->averaged()) check_unwritten();
  const std::optional<double> distance =
      replica_->average(exchange_.get(), may_revert, return_distance);
  if (!may_revert) written_.clear();
  weights_changed();
  return distance;
}

// Writes to the average are discarded. Nobody reads this worker's own weights any more: their
// exchange ended before the average.
void DecentOptimWrapper::revert_global_avg() {
  replica_->revert();
  weights_changed();
}

}  // namespace decent
