#include "decent/parallel/distributed_parameters.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/parallel/arrivals.h"
#include "decent/parallel/exchange/gradients.h"
#include "decent/parallel/gradient_scale.h"
#include "decent/parallel/optimizer_states.h"
#include "decent/parallel/replica.h"

namespace decent {
namespace {

double no_learning_rate(std::int64_t) {
  throw std::logic_error("without options.training.update the learning rate is your optimizer's");
}

TrainingOptions checked(const DistributedDataParallelOptions& options) {
  options.check();
  TrainingOptions training = options.training;
  if (training.update == nullptr) {
    training.schedule = no_learning_rate;
    training.update_time = UpdateTime::after_backward;
  }
  return training;
}

}  // namespace

void DistributedDataParallelOptions::check() const {
  gradient_type(comm_dtype);
  if (!(weight > 0) || !std::isfinite(weight))
    throw UserError("weight is " + std::to_string(weight) +
                    ": it must be a finite number greater than 0 (1 is usual)");
  const TrainingOptions& t = training;
  if (t.update != nullptr) return t.check();
  if (t.schedule || t.weight_decay != 0 || t.settings || t.clip.norm != 0 || t.loss_scaler ||
      t.ema) {
    throw UserError(
        "options.training.update is not set, so that backward() only averages gradients: schedule, "
        "weight_decay, settings, clip, loss_scaler and ema are then for your optimizer; or see "
        "make_update, e.g. make_update(\"adamw\")");
  }
}

// Buckets are packed, started and updated, each time in the order of buckets.
struct DistributedParameters::Parts {
  Parts(const std::shared_ptr<Communicator>& communicator, const Replica& replica,
        const DistributedDataParallelOptions& options)
      : exchange(communicator, replica, gradient_type(options.comm_dtype), options.weight,
                 options.training.update && options.training.update->needs_whole_parameters(),
                 options.training.trace),
        arrivals(replica.buckets()),
        places(replica.parameters().size()),
        packed(replica.parameters().size()) {
    for (std::size_t b = 0; b < replica.buckets().size(); ++b) {
      const std::vector<std::size_t>& parameters = replica.buckets()[b].parameters;
      for (std::size_t i = 0; i < parameters.size(); ++i) places[parameters[i]] = {b, i};
    }
  }

  GradientExchange exchange;
  Arrivals arrivals;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // by parameter: bucket, place in it
  std::vector<bool> packed;                                 // by parameter, in this step
  std::size_t started = 0;                                  // buckets, in this step
  std::size_t updated = 0;
};

DistributedParameters::DistributedParameters(const NamedTensors& parameters,
                                             const NamedTensors& buffers,
                                             std::shared_ptr<Communicator> communicator,
                                             DistributedDataParallelOptions options)
    : TrainedParameters(parameters, buffers, communicator, checked(options),
                        {.bucket_mb = 4,
                         .copies_alike = true,
                         .without_gradient = " on any worker: not updated in such steps"}),
      parts_(std::make_unique<Parts>(communicator, replica(), options)) {}

DistributedParameters::~DistributedParameters() = default;

void DistributedParameters::begin_step() {
  parts_->arrivals.begin();
  parts_->packed.assign(parts_->packed.size(), false);
  parts_->started = 0;
  parts_->updated = 0;
}

void DistributedParameters::on_gradient(std::size_t parameter) {
  if (parts_->packed[parameter]) {
    throw std::logic_error("parameter '" + replica().parameters()[parameter].first +
                           "' got a second gradient in one backward(), after the first was sent");
  }
  const auto [bucket, place] = parts_->places[parameter];
  put(bucket, place);
  parts_->arrivals.note(parameter);
  while (const auto complete = parts_->arrivals.take_complete()) start(*complete);
  if (!options().updates_in_backward()) return;
  while (parts_->updated < parts_->started && parts_->exchange.done(parts_->updated)) update_next();
}

// Handles buckets with a parameter that this backward() did not use, and those behind them. The
// parameter may still have a gradient, accumulated by an earlier backward().
void DistributedParameters::finish_step() {
  while (const auto bucket = parts_->arrivals.take_any()) {
    const std::vector<std::size_t>& parameters = replica().buckets()[*bucket].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parts_->packed[parameters[i]]) put(*bucket, i);
    }
    start(*bucket);
  }
  if (options().needs_whole_gradient()) measure_whole_gradient();
  while (parts_->updated < bucket_count()) update_next();
}

void DistributedParameters::put(std::size_t bucket, std::size_t place) {
  const std::size_t p = replica().buckets()[bucket].parameters[place];
  const at::Tensor& gradient = replica().parameters()[p].second.grad();
  if (!gradient.defined()) return;
  parts_->exchange.put(bucket, place, gradient);
  parts_->packed[p] = true;
  if (updates()) replica().release_gradient(p);
}

void DistributedParameters::start(std::size_t bucket) {
  parts_->exchange.start(bucket);
  ++parts_->started;
}

// Nothing if the sum was given up: the bucket stays as it is in this step.
std::optional<BucketGradients> DistributedParameters::wait(std::size_t bucket) {
  std::optional<BucketGradients> gradients;
  wait_for_others(bucket,
                  [&] { gradients = parts_->exchange.wait(bucket, states().slices(bucket)); });
  return gradients;
}

void DistributedParameters::measure_whole_gradient() {
  for (std::size_t b = 0; b < bucket_count(); ++b) measure(b, wait(b).value_or(BucketGradients()));
  scale().measured();
}

void DistributedParameters::update_next() {
  const std::size_t bucket = parts_->updated++;
  const std::optional<BucketGradients> gradients = wait(bucket);
  const TraceSpan span(options().trace.get(), kTrainingLane, "update",
                       {.bucket = static_cast<std::int64_t>(bucket)});
  if (gradients && updates()) {
    update(bucket, {}, *gradients, nullptr);
  } else if (gradients) {
    give_gradients(bucket, *gradients);
  } else {
    measure(bucket, {});  // no part of the norm
  }
  parts_->exchange.release(bucket);
}

// Gradients for the caller's optimizer share one tensor. For autograd they are not views of it,
// because torch's zero_grad() cannot detach views.
void DistributedParameters::give_gradients(std::size_t bucket, const BucketGradients& gradients) {
  const Bucket& of = replica().buckets()[bucket];
  const at::Tensor flat = parts_->exchange.flat(bucket);
  for (std::size_t i = 0; i < of.parameters.size(); ++i) {
    if (!gradients.present[i]) continue;
    const at::Tensor& parameter = replica().parameters()[of.parameters[i]].second;
    at::Tensor part = at::empty({0}, flat.options());
    part.set_(flat.storage(), of.offsets[i], parameter.sizes(), parameter.strides());
    at::Tensor(parameter).mutable_grad() = part;
  }
}

}  // namespace decent
