#include "decent/train/train_lines.h"

#include <optional>
#include <string>

#include "decent/task/device.h"
#include "decent/train/updates.h"

namespace decent {

TrainLines::TrainLines(Session& session)
    : session_(session),
      loss_watch_(session.run.trial.untrained_loss),
      meter_(
          session.team.communicator(), [this](const TrainMetrics& metrics) { show(metrics); },
          needs_near_copies(session.recipe().parallel)) {
  if (!session.reporter) return;
  // A resumed run begins with the losses that were logged before.
  for (const double loss : train_losses_in(session.folder.metrics())) loss_watch_.saw(loss);
}

void TrainLines::end_step() {
  if (session_.reporter) session_.reporter->step(session_.step(), session_.epoch());
}

void TrainLines::saw(const StepLoss& loss) {
  loss_ = loss.mean();
  if (session_.reporter) loss_watch_.saw(loss_);
  meter_.add_step(loss_, loss.seconds);
}

bool TrainLines::has_line() const {
  const std::int64_t every = session_.recipe().log.every_steps;
  const Plan& plan = session_.run.plan;
  const bool is_last = session_.step() == plan.total_steps || plan.rules.stops();
  return session_.step() % every == 0 || (session_.step() < every && is_last);
}

StepFacts TrainLines::facts() const {
  const Plan& plan = session_.run.plan;
  const TrainedParameters& parallel = *session_.parallel;
  const StepFacts facts{
      .step = session_.step(),
      .epoch = session_.epoch(),
      .lr = plan.rates.schedule(session_.step()),
      .loss = loss_,
      .weight = plan.sampler->weight(),
      .grad_norm = parallel.grad_norm(),
      .loss_scale = parallel.scales_loss() ? std::optional(loss_scale_) : std::nullopt,
      .wrap_share = parallel.wrap_share(),
      .update_samples = plan.sampler->mean_update_samples(),
      .between = session_.step() % session_.recipe().log.every_steps != 0};
  const bool is_resumed = plan.resumes && session_.step() == plan.first_step;
  return is_resumed ? meter_.kept(facts) : facts;
}

void TrainLines::begin_line() {
  StepFacts line = facts();
  line.comm_wait_s = session_.parallel->take_wait_seconds();
  line.gpu_memory_mb = take_peak_mb(session_.run.task.device.device);
  meter_.begin_line(line);
}

void TrainLines::show(const TrainMetrics& metrics) {
  if (!session_.reporter) return;
  session_.check_writable();
  session_.reporter->train(metrics);
  if (!metrics.wrap_share) return;
  if (const auto warning = wrap_watch_.saw(metrics.step, *metrics.wrap_share))
    session_.log.warn(*warning);
}

NamedTensors TrainLines::state() const {
  return {{tensor_name(kLogPrefix, "losses"), meter_.losses()},
          {tensor_name(kLogPrefix, "last_step"), meter_.last_step()}};
}

void TrainLines::warn_of_losses() {
  const PeakLr lr{.value = session_.run.plan.rates.peak, .given = session_.recipe().optimizer.lr};
  if (const auto warning = loss_watch_.warning(lr_text(lr, session_.team.size())))
    session_.log.warn(*warning);
}

}  // namespace decent
