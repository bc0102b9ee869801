#include "decent/train/trainer.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/version.h"
#include "decent/model/save.h"
#include "decent/resume/replica_loader.h"
#include "decent/task/backward.h"
#include "decent/task/device.h"
#include "decent/task/metrics.h"
#include "decent/task/non_finite.h"
#include "decent/task/predict.h"
#include "decent/task/random.h"
#include "decent/train/announcements.h"
#include "decent/train/buffer_backup.h"
#include "decent/train/fingerprint.h"
#include "decent/train/reporter_options.h"
#include "decent/train/run_trace.h"
#include "decent/train/tensor_bytes.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

// Batches of the whole run; more than can be counted are never reached either.
std::int64_t batch_count(const Setup& setup) {
  std::int64_t count = 0;
  const bool too_many =
      __builtin_mul_overflow(setup.total_steps, setup.recipe.train.grad_accumulation, &count);
  return too_many ? Prefetcher::kEndless : count;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Trainer::Trainer(Setup setup, std::shared_ptr<Communicator> world, World& workers, Log& log,
                 RunFolder folder, bool leads_folder)
    : setup_(std::move(setup)),
      world_(std::move(world)),
      workers_(workers),
      control_(workers.control()),
      log_(log),
      folder_(std::move(folder)),
      trace_(make_trace(setup_, folder_, world_->rank())),
      criterion_(setup_.recipe.model),
      loss_watch_(setup_.untrained_loss) {
  if (main_worker()) {
    reporter_ = std::make_unique<Reporter>(folder_, log_,
                                           reporter_options(setup_, world_->size(), log_.quiet()));
    // Of a run that goes on, what was logged before.
    for (const double loss : train_losses_in(folder_.metrics())) loss_watch_.saw(loss);
  }
  DecentralizedOptions options =
      parallel_options(setup_, [this](const std::string& text) { log_.warn(text); });
  options.trace = trace_;
  parallel_ = std::make_unique<DecentralizedDataParallel<TrainedModule>>(
      TrainedModule(*setup_.model), world_, std::move(options));
  finite_.emplace(*setup_.model);
  const EvalRecipe& eval = setup_.recipe.eval;
  if (setup_.eval && (eval.every_steps || eval.every_epochs || eval.at_start)) {
    evaluator_ = std::make_unique<Evaluator>(setup_.recipe, *setup_.model, *setup_.eval,
                                             setup_.inputs, world_, workers_);
  }
  const std::int64_t accumulation = setup_.recipe.train.grad_accumulation;
  batches_ = std::make_unique<Prefetcher>(
      [this, accumulation](std::int64_t number) {
        const TraceSpan span(trace_.get(), kDataLane, "batch of",
                             {.step = number / accumulation + 1});
        return read_batch(*setup_.train.source, setup_.train.fields,
                          setup_.sampler->micro_batch(number / accumulation, number % accumulation),
                          host_memory_for(setup_.device.device));
      },
      setup_.first_step * accumulation, batch_count(setup_),
      static_cast<std::size_t>(setup_.recipe.data.prefetch));
  checkpointer_ = make_checkpointer(leads_folder);
  stop_time_ = StopTime(bytes_of(parallel_->training_state()) * workers_.launch().local_world_size);
}

std::unique_ptr<Checkpointer> Trainer::make_checkpointer(bool leads_folder) {
  return std::make_unique<Checkpointer>(CheckpointerOptions{
      .world = workers_,
      .leads = leads_folder,
      .folder = CheckpointFolder(folder_.checkpoints()),
      .recipe = setup_.recipe.checkpoint,
      .higher_is_better = keeps_highest(setup_.recipe.checkpoint),
      .manifest = {.run = setup_.run_id,
                   .program = std::string(version()) + " (build " + std::string(build_id()) + ")",
                   .recipe = print_recipe(setup_.recipe),
                   .facts = facts_of(setup_)},
      .before_publishing = [this] {
        if (reporter_) reporter_->sync();
      }});
}

// Parameters that the checkpoint's run trained and this one does not.
NamedTensors Trainer::newly_frozen(const FoundCheckpoint& found) const {
  NamedTensors frozen;
  const ReplicaFile& replica = found.own.at(world_->rank());
  for (const auto& [name, tensor] : untrained_part(setup_.model->parameters())) {
    if (replica.find(update_count_name(name)) != nullptr) frozen.emplace_back(name, tensor);
  }
  return model_tensors(frozen, {});
}

void Trainer::go_on_from(FoundCheckpoint& found, bool in_its_place) {
  control_.report(Operation::loading);
  const NamedTensors targets = parallel_->training_state();
  const AverageRules rules{.average_buffers = setup_.recipe.parallel.average_buffers};
  if (found.whole() && found.manifest.world_size == world_->size()) {
    load_replica(found, *world_, targets);
    // Nothing would ever bring the workers' copies of these together again.
    average_replicas(found, *world_, newly_frozen(found), rules);
  } else {
    average_replicas(found, *world_, targets, rules);
  }
  parallel_->continue_from(found.manifest.step, targets);
  control_.go_on_from(found.manifest.step);
  if (in_its_place) checkpointer_->stands_already(found.manifest.step);
}

TrainingEnd Trainer::train() {
  announce_run(log_, setup_,
               {.workers = world_->size(),
                .parameters = parallel_->parameter_count(),
                .buckets = static_cast<std::int64_t>(parallel_->bucket_count())});
  parallel_->train();
  if (const auto limit = setup_.recipe.parallel.stall_s)
    control_.set_stall_limit(std::chrono::duration<double>(*limit), "parallel.stall_s");
  if (evaluator_ && setup_.recipe.eval.at_start && !setup_.goes_on) evaluate();
  while (step() < setup_.total_steps) {
    checkpointer_->check();
    if (!control_.begin_step(step() + 1)) {
      finish_train_line(/*wait=*/true);
      return TrainingEnd::stopped;
    }
    if (trace_) trace_->begin_step(step() + 1);
    train_step();
    if (trace_) trace_->end_step();
    control_.report(Operation::logging);
    if (reporter_) reporter_->step(step(), epoch());
    if (step() % setup_.recipe.log.every_steps == 0) start_train_line();
    finish_train_line(/*wait=*/false);
    if (evaluation_is_due()) evaluate();
    if (checkpoint_is_due()) save(/*may_go_on=*/true);
    if (workers_.launch().torchrun) warn_of_late_stop();
  }
  finish_train_line(/*wait=*/true);
  control_.report(Operation::averaging);
  parallel_->global_avg(/*will_revert=*/false);  // waits for all exchanges
  if (trace_) trace_->finish();
  return TrainingEnd::completed;
}

void Trainer::train_step() {
  const TraceSpan span(trace_.get(), kTrainingLane, "", {.step = step() + 1});
  const auto begin = Clock::now();
  const std::int64_t accumulation = setup_.recipe.train.grad_accumulation;
  seed_generator(static_cast<std::uint64_t>(setup_.recipe.seed), world_->rank(), step() + 1,
                 RandomStream::training, setup_.device.device);
  last_loss_ = 0;
  step_loss_scale_ = parallel_->loss_scale();
  const BufferBackup backup(setup_.model->buffers(), parallel_->scales_loss());
  for (std::int64_t a = 1; a <= accumulation; ++a) {
    parallel_->set_accumulate_grad(a < accumulation);
    last_loss_ += micro_step(a - 1) / static_cast<double>(accumulation);
  }
  if (main_worker()) loss_watch_.saw(last_loss_);
  if (parallel_->overflowed()) backup.restore_non_finite();
  const double seconds = seconds_since(begin);
  interval_.step_s += seconds;
  stop_time_.saw_step(seconds);
  ++interval_.steps;
}

// One micro-batch, counted from 0: its share of the gradient, and with the last one the update.
// Returns its loss.
double Trainer::micro_step(std::int64_t micro_batch) {
  const HeldBatch batch(next_batch(), setup_.device.device);
  const MeanLoss loss = forward_and_loss(*batch, micro_batch);
  const std::int64_t accumulation = setup_.recipe.train.grad_accumulation;
  const double share = parallel_->loss_scale() / static_cast<double>(accumulation);
  backward(share == 1 ? loss.tensor : loss.tensor.mul(share));
  return loss.value;
}

Batch Trainer::next_batch() {
  const TraceSpan span(trace_.get(), kTrainingLane, "data wait");
  const auto begin = Clock::now();
  control_.report(Operation::waiting_for_data);
  Batch batch = batches_->next();
  interval_.data_wait_s += seconds_since(begin);
  return batch;
}

MeanLoss Trainer::forward_and_loss(const Batch& batch, std::int64_t micro_batch) {
  const TraceSpan span(trace_.get(), kTrainingLane, "forward");
  control_.report(Operation::forward);
  const auto [output, target] =
      predict(*setup_.model, setup_.inputs, criterion_, setup_.train, batch);
  const MeanLoss loss = criterion_.mean_loss(output, target);
  // Before the update of this step, which would make all parameters alike.
  if (!std::isfinite(loss.value) && !may_be_overflow()) {
    throw Error(ExitCode::diverged, divergence_text(setup_, {.step = step() + 1,
                                                             .micro_batch = micro_batch,
                                                             .read = batch,
                                                             .output = output,
                                                             .loss = loss.value}));
  }
  return loss;
}

// With a loss scaler a loss that is not finite is an overflow of float16 like any other: the step
// is not updated, and the next loss is scaled less.
bool Trainer::may_be_overflow() const {
  return parallel_->scales_loss() && !parallel_->loss_scale_at_its_end();
}

// Mixing, update and the next exchange all happen in here.
void Trainer::backward(const at::Tensor& loss) {
  const TraceSpan span(trace_.get(), kTrainingLane, "backward");
  control_.report(Operation::backward);
  const std::int64_t before = step();
  run_backward(loss);
  setup_.model->settle_buffers();
  if (step() == before && !parallel_->accumulates_grad()) {
    throw UserError("no parameter of the model takes part in the loss of step " +
                    std::to_string(before + 1));
  }
}

void Trainer::start_train_line() {
  finish_train_line(/*wait=*/true);
  const double steps = static_cast<double>(interval_.steps);
  const double step_s = interval_.step_s / steps;
  const TrainMetrics metrics{
      .step = step(),
      .epoch = epoch(),
      .lr = setup_.schedule(step()),
      .samples_per_s = static_cast<double>(setup_.sampler->update_samples()) / step_s,
      .step_ms = 1e3 * step_s,
      .comm_wait_ms = 1e3 * parallel_->take_wait_seconds() / steps,
      .data_wait_ms = 1e3 * interval_.data_wait_s / steps,
      .grad_norm = parallel_->grad_norm(),
      .loss_scale = parallel_->scales_loss() ? std::optional(step_loss_scale_) : std::nullopt};
  interval_ = {};
  const at::Tensor sums = at::tensor({last_loss_, metrics.grad_norm.value_or(0.0)}, at::kDouble);
  pending_line_ =
      PendingLine{.metrics = metrics, .sums = sums, .work = world_->all_reduce_sum(sums)};
}

void Trainer::finish_train_line(bool wait) {
  if (!pending_line_ || !(wait || pending_line_->work->done())) return;
  pending_line_->work->wait();
  TrainMetrics metrics = pending_line_->metrics;
  const double* sums = pending_line_->sums.const_data_ptr<double>();
  metrics.loss = sums[0] / world_->size();
  if (metrics.grad_norm) metrics.grad_norm = sums[1] / world_->size();
  pending_line_.reset();
  if (reporter_) reporter_->train(metrics);
}

// Always after the last update, where it is on at all.
bool Trainer::is_due(std::optional<std::int64_t> every_steps,
                     std::optional<std::int64_t> every_epochs) const {
  if (!every_steps && !every_epochs) return false;
  const bool by_steps = every_steps && step() % *every_steps == 0;
  const DataPosition position = setup_.sampler->position(step());
  const bool by_epochs =
      every_epochs && position.consumed == 0 && position.epoch % *every_epochs == 0;
  return by_steps || by_epochs || step() == setup_.total_steps;
}

bool Trainer::evaluation_is_due() const {
  const EvalRecipe& eval = setup_.recipe.eval;
  if (!evaluator_) return false;
  // at_start alone also asks for an evaluation at the end.
  return is_due(eval.every_steps, eval.every_epochs) || step() == setup_.total_steps;
}

bool Trainer::checkpoint_is_due() const {
  return is_due(setup_.recipe.checkpoint.every_steps, setup_.recipe.checkpoint.every_epochs);
}

void Trainer::save(bool may_go_on) {
  const TraceSpan span(trace_.get(), kTrainingLane, "saving");
  finish_train_line(/*wait=*/true);  // lines up to this step are on disk before its checkpoint
  control_.report(Operation::saving);
  const DataPosition position = setup_.sampler->position(step());
  Checkpointer::Moment moment{.workers = workers_.membership(),
                              .step = step(),
                              .epoch = position.epoch,
                              .consumed = position.consumed,
                              .epochs_done = epoch()};
  if (last_evaluation_ && last_evaluation_->step == step()) {
    moment.metrics.emplace_back("loss", last_evaluation_->loss);
    for (const Score& score : last_evaluation_->scores) {
      moment.metrics.emplace_back(score.name, score.value);
    }
  }
  checkpointer_->save(moment, parallel_->training_state(), may_go_on);
}

void Trainer::warn_of_late_stop() {
  if (const auto seconds = checkpointer_->take_seconds()) stop_time_.saw_save(*seconds);
  if (const auto warning = stop_time_.warning()) log_.warn(*warning);
}

std::filesystem::path Trainer::save_stopped() {
  finish_saving();
  if (checkpointer_->last_step() != step()) save(/*may_go_on=*/false);
  if (trace_) trace_->finish();
  return CheckpointFolder(folder_.checkpoints()).path_of(step());
}

void Trainer::evaluate() {
  const TraceSpan span(trace_.get(), kTrainingLane, "evaluation");
  finish_train_line(/*wait=*/true);
  control_.report(Operation::averaging);
  const std::optional<double> distance =
      parallel_->global_avg(/*will_revert=*/true, /*return_distance=*/true);
  const Evaluation evaluation = evaluator_->evaluate(step());
  parallel_->revert_global_avg();
  last_evaluation_ = EvalMetrics{.step = step(),
                                 .epoch = epoch(),
                                 .loss = evaluation.loss,
                                 .scores = evaluation.scores,
                                 .samples = evaluation.samples,
                                 .consensus_distance = distance.value()};
  if (reporter_) reporter_->evaluation(*last_evaluation_);
}

// The last update may have lost numbers that no loss has shown.
void Trainer::check_finite() const {
  const auto lost = finite_->find_lost(*setup_.model);
  if (!lost) return;
  throw Error(ExitCode::diverged,
              "training diverged: after step " + std::to_string(step()) +
                  " the averaged model is not finite in " + *lost +
                  ", so that it was not exported.\nA smaller optimizer.lr or a longer "
                  "schedule.warmup_steps may help.");
}

void Trainer::export_average() {
  control_.report(Operation::exporting);
  check_finite();
  if (!main_worker()) return;
  save_torchscript(*setup_.model, folder_.model());
  save_safetensors(*setup_.model, folder_.weights());
  if (const auto warning = loss_watch_.warning(setup_.recipe.optimizer.lr)) log_.warn(*warning);
  reporter_->complete(step());
}

void Trainer::note_end(const std::string& status) {
  if (reporter_) reporter_->end(status, std::max(step(), setup_.first_step));
}

}  // namespace decent
