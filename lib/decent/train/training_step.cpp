#include "decent/train/training_step.h"

#include <chrono>
#include <string>

#include "decent/core/error.h"
#include "decent/task/passes.h"
#include "decent/train/buffer_backup.h"
#include "decent/train/forward/training_forward.h"

namespace decent {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

TrainingStep::TrainingStep(Session& session, TrainLines& lines)
    : session_(session),
      lines_(lines),
      forward_(session.run, session.team.rank(), *session.parallel, session.trace,
               [&lines](const StepLoss& loss) { lines.saw(loss); }),
      read_ahead_(training_batches(session.run, session.trace)),
      batches_(*read_ahead_, session.run.task.device.device) {}

// The whole step, as a list:
//   1. seed the random generators by (seed, rank, step)
//   for each micro-batch:
//     2. take the next batch, which was read ahead
//     3. forward; loss
//     4. look at the losses of the step before, if a GPU had still to compute them
//     5. backward adds to the gradients
//   in the last backward, for each bucket, once its gradients and the buckets before it are done
//   (at the end of it, if the norm of the whole gradient is needed first; and for buckets with
//   parameters that this step did not use):
//     6. wait for the exchange of the bucket, which began one step ago
//     7. mix and update, in one pass over memory
//     8. begin the next exchange, with the neighbours of this step
//   9. take back what an overflowed step left in the buffers
// 6 to 8 are DecentralizedParameters::handle_bucket. In DistributedParameters, the exchange begins
// after 5 and carries gradients; it is waited for in the same step, and nothing is mixed.
double TrainingStep::run() {
  TrainedParameters& parallel = *session_.parallel;
  Trace* const trace = session_.trace.get();
  const std::int64_t step = session_.step() + 1;
  if (trace != nullptr) trace->begin_step(step);
  const auto begin = Clock::now();
  {
    const TraceSpan span(trace, kTrainingLane, "", {.step = step});
    lines_.begin_step();
    forward_.begin_step();
    const BufferBackup backup(session_.run.task.model->buffers(), parallel.scales_loss());
    for (std::int64_t a = 0; a < accumulation(); ++a) {
      parallel.set_accumulate_grad(a + 1 < accumulation());
      add_gradients(a);
    }
    if (parallel.overflowed()) backup.restore_non_finite();
    forward_.end_step(seconds_since(begin));
  }
  const double seconds = seconds_since(begin);
  if (trace != nullptr) trace->end_step();
  return seconds;
}

// `micro_batch` is counted from 0.
void TrainingStep::add_gradients(std::int64_t micro_batch) {
  const auto batch = next_batch();
  session_.team.control().report(Operation::forward);
  const at::Tensor loss = forward_.run(*batch, micro_batch);
  forward_.settle();  // the losses of the step before, now that the GPU has this forward to do
  const double share = session_.parallel->loss_scale() / static_cast<double>(accumulation());
  backward(share == 1 ? loss : loss.mul(share));
}

std::unique_ptr<DeviceBatch> TrainingStep::next_batch() {
  const TraceSpan span(session_.trace.get(), kTrainingLane, "data wait");
  const auto begin = Clock::now();
  session_.team.control().report(Operation::waiting_for_data);
  auto batch = batches_.next();
  lines_.waited_for_data(seconds_since(begin));
  return batch;
}

void TrainingStep::backward(const at::Tensor& loss) {
  const TraceSpan span(session_.trace.get(), kTrainingLane, "backward");
  session_.team.control().report(Operation::backward);
  const std::int64_t before = session_.step();
  try {
    run_backward(loss);
  } catch (const Error& error) {
    if (error.code() == ExitCode::diverged) forward_.settle_early();
    throw;
  }
  session_.run.task.model->settle_buffers();
  if (session_.step() == before && !session_.parallel->accumulates_grad()) {
    throw UserError("no parameter of the model takes part in the loss of step " +
                    std::to_string(before + 1));
  }
}

}  // namespace decent
