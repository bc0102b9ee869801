#include "decent/train/step_meter.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <string>
#include <utility>

#include "decent/comm/lost_workers.h"
#include "decent/core/text.h"

namespace decent {

StepMeter::StepMeter(std::shared_ptr<Communicator> communicator, Show show, bool wrap_shares)
    : communicator_(std::move(communicator)),
      show_(std::move(show)),
      wrap_shares_(wrap_shares),
      losses_(at::zeros({2}, at::kDouble)),
      last_step_(at::zeros({2, 4}, at::kDouble)) {}

void StepMeter::add_step(double loss, double seconds) {
  double* losses = losses_.mutable_data_ptr<double>();
  losses[0] += loss;
  losses[1] += 1;
  interval_.step_s += seconds;
  ++interval_.steps;
}

void StepMeter::keep(const StepFacts& facts) {
  const std::array<std::optional<double>, 4> kept = {facts.loss, facts.grad_norm, facts.loss_scale,
                                                     facts.wrap_share};
  double* last = last_step_.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    last[i] = kept[i].value_or(0);
    last[kept.size() + i] = kept[i] ? 1 : 0;
  }
}

StepFacts StepMeter::kept(StepFacts facts) const {
  const double* last = last_step_.const_data_ptr<double>();
  const auto fact = [last](std::size_t i) {
    return last[4 + i] == 0 ? std::nullopt : std::optional(last[i]);
  };
  facts.loss = fact(0).value_or(facts.loss);
  facts.grad_norm = fact(1);
  facts.loss_scale = fact(2);
  facts.wrap_share = fact(3);
  return facts;
}

// Loss, mean loss and gradient norm; then the wrap share, and 1 if there is one.
std::vector<double> StepMeter::summands_of(const StepFacts& facts) const {
  const double* losses = losses_.const_data_ptr<double>();
  std::vector<double> summands = {facts.weight * facts.loss, facts.weight * losses[0] / losses[1],
                                  facts.grad_norm.value_or(0.0)};
  if (wrap_shares_) {
    summands.push_back(facts.wrap_share.value_or(0.0));
    summands.push_back(facts.wrap_share ? 1 : 0);
  }
  return summands;
}

void StepMeter::begin_line(const StepFacts& facts) {
  finish_line(/*wait=*/true);
  const double steps = static_cast<double>(interval_.steps);
  const double step_s = interval_.step_s / steps;
  const TrainMetrics metrics{.step = facts.step,
                             .epoch = facts.epoch,
                             .lr = facts.lr,
                             .samples_per_s = facts.update_samples / step_s,
                             .step_ms = 1e3 * step_s,
                             .comm_wait_ms = 1e3 * facts.comm_wait_s / steps,
                             .data_wait_ms = 1e3 * interval_.data_wait_s / steps,
                             .grad_norm = facts.grad_norm,
                             .loss_scale = facts.loss_scale,
                             .gpu_memory_mb = facts.gpu_memory_mb};
  interval_ = {};
  const at::Tensor sums = at::tensor(summands_of(facts), at::kDouble);
  if (!facts.between) losses_.zero_();
  try {
    line_ = Line{.metrics = metrics, .sums = sums, .work = communicator_->all_reduce_sum(sums)};
  } catch (const GivenUp&) {  // there is no mean without the lost worker
  }
}

void StepMeter::finish_line(bool wait) {
  if (!line_ || !(wait || line_->work->done())) return;
  try {
    line_->work->wait();
  } catch (const GivenUp&) {
    return line_.reset();
  }
  TrainMetrics metrics = line_->metrics;
  const double* sums = line_->sums.const_data_ptr<double>();
  metrics.loss = sums[0] / communicator_->size();
  metrics.loss_mean = sums[1] / communicator_->size();
  if (metrics.grad_norm) metrics.grad_norm = sums[2] / communicator_->size();
  if (wrap_shares_ && sums[4] > 0) metrics.wrap_share = sums[3] / sums[4];
  line_.reset();
  show_(metrics);
}

std::optional<std::string> WrapWatch::saw(std::int64_t step, double share) {
  if (warned_ || !(share > kMaxShare)) return std::nullopt;
  warned_ = true;
  return "step " + std::to_string(step) + ": copies of " + short_number_text(100 * share) +
         "% of the weights are further apart than the codes of the exchange can tell (wrap_share): "
         "they are mixed with wrong differences.\n"
         "A larger parallel.modulo_range, comm_dtype: modulo4, fewer slices or a smaller "
         "optimizer.lr may help.";
}

}  // namespace decent
