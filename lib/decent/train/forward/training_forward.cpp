#include "decent/train/forward/training_forward.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "decent/core/error.h"
#include "decent/task/device.h"
#include "decent/task/non_finite.h"
#include "decent/task/passes.h"
#include "decent/task/random.h"
#include "decent/task/target_check.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

// The number of batches of the whole run; a number that overflows is never reached anyway.
std::int64_t batch_count(const Run& run) {
  std::int64_t count = 0;
  const bool too_many =
      __builtin_mul_overflow(run.plan.total_steps, run.task.recipe.train.grad_accumulation, &count);
  return too_many ? Prefetcher::kEndless : count;
}

// The batch of micro-batch `micro_batch` of update `update`, both counted from 0, in host memory
// that suits the run's device. Any thread.
Batch read_training_batch(const Run& run, std::int64_t update, std::int64_t micro_batch) {
  return run.task.train->read(run.plan.sampler->micro_batch(update, micro_batch),
                              run.plan.sampler->position(update).epoch,
                              host_memory_for(run.task.device.device));
}

// Seeds the random generators for step `step`, counted from 1, of worker `rank`.
void seed_training_step(const Run& run, int rank, std::int64_t step) {
  seed_generator(static_cast<std::uint64_t>(run.task.recipe.seed), rank, step,
                 RandomStream::training, run.task.device.device);
}

}  // namespace

std::unique_ptr<Prefetcher> training_batches(const Run& run, std::shared_ptr<Trace> trace) {
  const std::int64_t accumulation = run.task.recipe.train.grad_accumulation;
  return std::make_unique<Prefetcher>(
      [&run, trace = std::move(trace), accumulation](std::int64_t number) {
        const std::int64_t update = number / accumulation;
        const TraceSpan span(trace.get(), kDataLane, "batch of", {.step = update + 1});
        return read_training_batch(run, update, number % accumulation);
      },
      run.plan.first_step * accumulation, batch_count(run),
      static_cast<std::size_t>(run.task.recipe.data.prefetch),
      static_cast<std::size_t>(run.task.recipe.data.threads),
      thread_start_for(run.task.device.device));
}

TrainingForward::TrainingForward(Run& run, int rank, TrainedParameters& parallel,
                                 std::shared_ptr<Trace> trace, StepLosses::Saw saw)
    : run_(run),
      rank_(rank),
      parallel_(parallel),
      trace_(std::move(trace)),
      saw_(std::move(saw)),
      losses_([this](const StepLoss& loss) { look_at(loss); }) {}

// An exchange of codes mixes weights even while updates are held. The weights would then have
// changed since the step when the host looks for the cause.
bool TrainingForward::may_read_late() const {
  return parallel_.can_hold() && !run_.task.criterion.has_weights() &&
         !needs_near_copies(run_.task.recipe.parallel) && !(trace_ && trace_->on());
}

// With a loss scaler, a loss that is not finite counts as an overflow of float16: the step makes no
// update, and the next loss is scaled less.
bool TrainingForward::may_be_overflow() const {
  return parallel_.scales_loss() && !parallel_.loss_scale_at_its_end();
}

std::vector<std::int64_t> TrainingForward::samples(std::int64_t step,
                                                   std::int64_t micro_batch) const {
  return run_.plan.sampler->micro_batch(step - 1, micro_batch);
}

void TrainingForward::begin_step() {
  reads_late_ = may_read_late();
  seed_training_step(run_, rank_, parallel_.step() + 1);
}

at::Tensor TrainingForward::run(const DeviceBatch& batch, std::int64_t micro_batch) {
  const TraceSpan span(trace_.get(), kTrainingLane, "forward");
  const std::int64_t step = parallel_.step() + 1;
  try {
    return forward(batch, micro_batch);
  } catch (const UserError& error) {
    throw_for_batch(run_.task, *run_.task.train, samples(step, micro_batch), batch.read(), error,
                    step);
  }
}

at::Tensor TrainingForward::forward(const DeviceBatch& batch, std::int64_t micro_batch) {
  Task& task = run_.task;
  const auto [output, target] =
      predict(*task.model, task.inputs, task.criterion, *task.train, batch);
  if (reads_late_) {
    const at::Tensor loss =
        task.criterion.unread_mean_loss(output, target, task.train->target_in(batch.read().fields));
    task.doubts.saw(task.criterion, task.train->key, output, target);
    parallel_.hold_unless_finite(loss);
    losses_.add(loss);
    return loss;
  }
  const MeanLoss loss = task.criterion.mean_loss(output, target);
  task.doubts.saw(task.criterion, task.train->key, output, target);
  losses_.add(loss.value);
  // The update of this step would spread the NaN to all parameters, so the text is made before it.
  if (std::isfinite(loss.value) || may_be_overflow()) return loss.tensor;
  const std::int64_t step = parallel_.step() + 1;
  throw Error(ExitCode::diverged, divergence_text(task, {.step = step,
                                                         .samples = samples(step, micro_batch),
                                                         .read = batch.read(),
                                                         .output = output,
                                                         .loss = loss.value}));
}

void TrainingForward::end_step(double seconds) { losses_.end_step(parallel_.step(), seconds); }

void TrainingForward::look_at(const StepLoss& loss) {
  if (!parallel_.scales_loss() && !loss.is_finite()) {
    diverged_step_ = loss.step;
    throw Error(ExitCode::diverged, late_divergence_text(loss));
  }
  saw_(loss);
}

// The batch was dropped long ago. So it is read and run again, after the micro-batches before it,
// with the same random numbers and weights as the first time.
std::string TrainingForward::late_divergence_text(const StepLoss& loss) const {
  const at::NoGradGuard no_grad;
  Task& task = run_.task;
  seed_training_step(run_, rank_, loss.step);
  for (std::size_t a = 0;; ++a) {
    const auto micro_batch = static_cast<std::int64_t>(a);
    const Batch batch = read_training_batch(run_, loss.step - 1, micro_batch);
    const Prediction prediction =
        predict(*task.model, task.inputs, task.criterion, *task.train, batch);
    if (std::isfinite(loss.micro_batches[a])) continue;
    return divergence_text(task, {.step = loss.step,
                                  .samples = samples(loss.step, micro_batch),
                                  .read = batch,
                                  .output = prediction.output,
                                  .loss = loss.micro_batches[a]});
  }
}

}  // namespace decent
