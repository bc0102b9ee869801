#include "decent/parallel/decentralized_parameters.h"

#include <utility>

#include "decent/core/error.h"
#include "decent/optim/update_names.h"
#include "decent/parallel/arrivals.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/gradient_scale.h"
#include "decent/parallel/missing_gradients.h"
#include "decent/parallel/optimizer_states.h"
#include "decent/parallel/replica.h"

namespace decent {
namespace {

std::vector<Phase> checked_phases(const std::shared_ptr<Communicator>& communicator,
                                  const DecentralizedOptions& options) {
  if (communicator == nullptr) return {};  // the base class refuses it
  options.check();
  return phases_of(options.topology, communicator->size(), options.local_world_size);
}

std::unique_ptr<Exchange> make_exchange(const Replica& replica, const OptimizerStates& states,
                                        const std::shared_ptr<Communicator>& communicator,
                                        const std::vector<Phase>& phases,
                                        const DecentralizedOptions& options) {
  std::unique_ptr<Exchange> exchange =
      options.exchange.make({.communicator = communicator,
                             .phases = phases,
                             .buckets = flat_tensors(replica.buckets()),
                             .trace = options.training.trace,
                             .schedule = options.training.schedule,
                             .lr_scales = states.lr_scales()});
  exchange->set_gamma(options.gamma);
  return exchange;
}

}  // namespace

void check_gamma(double gamma) {
  if (!(gamma >= 0 && gamma <= 1))
    throw UserError("gamma is " + std::to_string(gamma) + ": it must be in [0, 1]");
}

void DecentralizedOptions::check() const {
  training.check();
  check_gamma(gamma);
  exchange.check();
  if (exchange.needs_near_copies() && !training.update->steps_bounded_by_lr()) {
    throw UserError(
        "a modulo exchange needs an optimizer whose steps are bounded by the learning rate, which "
        "its grid follows: " +
        updates_bounded_by_lr() + " (an update of your own says so by steps_bounded_by_lr())");
  }
}

struct DecentralizedParameters::Parts {
  std::unique_ptr<Exchange> exchange;
  Arrivals arrivals;
};

DecentralizedParameters::DecentralizedParameters(const NamedTensors& parameters,
                                                 const NamedTensors& buffers,
                                                 std::shared_ptr<Communicator> communicator,
                                                 DecentralizedOptions options)
    : DecentralizedParameters(parameters, buffers, communicator, options,
                              checked_phases(communicator, options)) {}

DecentralizedParameters::DecentralizedParameters(const NamedTensors& parameters,
                                                 const NamedTensors& buffers,
                                                 const std::shared_ptr<Communicator>& communicator,
                                                 DecentralizedOptions options,
                                                 const std::vector<Phase>& phases)
    : TrainedParameters(parameters, buffers, communicator, options.training,
                        {.without_gradient = without_gradient(phases)}),
      options_(std::move(options)),
      parts_(std::make_unique<Parts>(
          Parts{.exchange = make_exchange(replica(), states(), communicator, phases, options_),
                .arrivals = Arrivals(replica().buckets())})) {}

DecentralizedParameters::~DecentralizedParameters() = default;

Exchange* DecentralizedParameters::exchange() const { return parts_->exchange.get(); }

void DecentralizedParameters::set_adaptive_factor(double gamma) {
  check_gamma(gamma);
  parts_->exchange->set_gamma(gamma);
}

void DecentralizedParameters::begin_step() { parts_->arrivals.begin(); }

void DecentralizedParameters::on_gradient(std::size_t parameter) {
  parts_->arrivals.note(parameter);
  if (!options().updates_in_backward()) return;
  while (const auto bucket = parts_->arrivals.take_complete()) handle_bucket(*bucket);
}

// Handles the buckets left at the end of backward: those with a parameter that this step did not
// use, and those behind them.
void DecentralizedParameters::finish_step() {
  if (options().needs_whole_gradient()) measure_whole_gradient();
  while (const auto bucket = parts_->arrivals.take_any()) handle_bucket(*bucket);
}

void DecentralizedParameters::measure_whole_gradient() {
  for (std::size_t b = 0; b < bucket_count(); ++b)
    measure(b, own_gradients(replica(), b, states().slices(b)));
  scale().measured();
}

Mixing DecentralizedParameters::wait_for_exchange(std::size_t index) {
  Mixing mixing;
  wait_for_others(index, [&] {
    if (options_.pre_average) show_received(index);
    mixing = parts_->exchange->wait(index);
  });
  return mixing;
}

void DecentralizedParameters::show_received(std::size_t index) {
  const auto received = parts_->exchange->peek(index);
  if (!received) return;
  options_.pre_average({.step = step() + 1,
                        .bucket = index,
                        .edge = *received->edge,
                        .local = replica().buckets()[index].x,
                        .received = received->others});
}

void DecentralizedParameters::handle_bucket(std::size_t index) {
  const Mixing mixing = wait_for_exchange(index);
  TraceSpan span(options_.training.trace.get(), kTrainingLane, "mix+update",
                 {.bucket = static_cast<std::int64_t>(index)});
  update(index, mixing, own_gradients(replica(), index, states().slices(index)),
         parts_->exchange->while_writing(index, step() + 1));
  for (const std::size_t p : replica().buckets()[index].parameters) replica().release_gradient(p);
  span.end();
  parts_->exchange->start(index, step() + 1);
}

}  // namespace decent
