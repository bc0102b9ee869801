#include "decent/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/core/version.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/replica_loader.h"
#include "decent/task/device.h"
#include "decent/task/metrics.h"
#include "decent/task/passes.h"
#include "decent/train/buffer_backup.h"
#include "decent/train/evaluation/evaluated_average.h"
#include "decent/train/fingerprint.h"
#include "decent/train/methods.h"
#include "decent/train/model_files.h"
#include "decent/train/training_batches.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

using Clock = std::chrono::steady_clock;

bool copies_alike(const Run& run) { return method_of(run).copies_alike; }

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The trace that log.trace asks for, restricted to steps that are still to come; null if there are
// none, or if it asks for nothing. Nothing is written before those steps are done.
std::shared_ptr<Trace> make_trace(const Run& run, const RunFolder& folder, int rank) {
  const auto& range = run.task.recipe.log.trace;
  if (!range || (*range)[1] <= run.plan.first_step || (*range)[0] > run.plan.total_steps)
    return nullptr;
  return std::make_shared<Trace>(TraceOptions{
      .first = (*range)[0], .last = (*range)[1], .rank = rank, .file = folder.trace(rank)});
}

ProgressDisplay display_of(ProgressStyle style) {
  switch (style) {
    case ProgressStyle::automatic:
      return ProgressBar::fits_stdout() ? ProgressDisplay::bar : ProgressDisplay::plain;
    case ProgressStyle::bar:
      return ProgressDisplay::bar;
    case ProgressStyle::plain:
      return ProgressDisplay::plain;
    case ProgressStyle::off:
      return ProgressDisplay::off;
  }
  throw std::logic_error("a progress style without a display");
}

ReporterOptions reporter_options(const Run& run, int workers, bool quiet) {
  const LogRecipe& recipe = run.task.recipe.log;
  return {.workers = workers,
          .first_step = run.plan.first_step,
          .total_steps = run.plan.total_steps,
          .update_samples = run.plan.sampler->update_samples(),
          .display = quiet ? ProgressDisplay::off : display_of(recipe.progress),
          .tensorboard = recipe.tensorboard};
}

}  // namespace

Trainer::Trainer(Run run, Team team, Log& log, TrainerOptions options)
    : run_(std::move(run)),
      team_(std::move(team)),
      control_(team_.control()),
      launch_(options.launch),
      log_(log),
      folder_(run_.task.recipe.output),
      trace_(make_trace(run_, folder_, team_.rank())),
      check_folder_(options.check_folder),
      evaluations_(run_.task.eval ? Cadence::of(run_.task.recipe.eval) : Cadence{}),
      saves_(Cadence::of(run_.task.recipe.checkpoint)),
      loss_watch_(run_.trial.untrained_loss),
      meter_(
          team_.communicator(), [this](const TrainMetrics& metrics) { show(metrics); },
          needs_near_copies(run_.task.recipe.parallel)),
      data_warnings_(folder_.skipped(), log_) {
  if (std::ranges::count(options.leaders, team_.rank()) > 0 && run_.task.learned.is_whole())
    write_file(folder_.data(), print_learned(run_.task.learned));
  if (team_.speaks()) {
    reporter_ = std::make_unique<Reporter>(folder_, log_,
                                           reporter_options(run_, team_.size(), log_.quiet()));
    // A resumed run begins with the losses that were logged before.
    for (const double loss : train_losses_in(folder_.metrics())) loss_watch_.saw(loss);
  }
  parallel_ = method_of(run_).make(
      run_, team_.communicator(),
      {.warn = [this](const std::string& text) { log_.warn(text); }, .trace = trace_});
  forward_ = std::make_unique<TrainingForward>(run_, team_.rank(), *parallel_, trace_,
                                               [this](const StepLoss& loss) { saw(loss); });
  finite_.emplace(*run_.task.model);
  if (evaluations_.is_on()) evaluator_ = std::make_unique<Evaluator>(run_.task, team_);
  read_ahead_ = training_batches(run_, trace_);
  batches_ = std::make_unique<DeviceBatches>(*read_ahead_, run_.task.device.device);
  checkpointer_ = make_checkpointer(options);
  stop_time_ = StopTime(checkpoint_bytes(state(), launch_.local_world_size, copies_alike(run_)));
}

std::unique_ptr<Checkpointer> Trainer::make_checkpointer(const TrainerOptions& options) {
  return std::make_unique<Checkpointer>(
      CheckpointerOptions{.team = team_,
                          .leaders = options.leaders,
                          .copies_alike = copies_alike(run_),
                          .folder = CheckpointFolder(folder_.checkpoints()),
                          .recipe = run_.task.recipe.checkpoint,
                          .higher_is_better = keeps_highest(run_.task.recipe.checkpoint),
                          .manifest = {.run = options.run_id,
                                       .program = version_text(),
                                       .recipe = print_recipe(run_.task.recipe),
                                       .facts = facts_of(run_)},
                          .data = print_if_whole(run_.task.learned),
                          .before_publishing = [this] {
                            if (reporter_) reporter_->sync();
                          }});
}

// This worker's part of a checkpoint.
NamedTensors Trainer::state() const {
  NamedTensors state = parallel_->training_state();
  state.emplace_back(tensor_name(kLogPrefix, "losses"), meter_.losses());
  state.emplace_back(tensor_name(kLogPrefix, "last_step"), meter_.last_step());
  return state;
}

RunSize Trainer::size() const {
  return {.workers = team_.size(),
          .parameters = parallel_->parameter_count(),
          .buckets = static_cast<std::int64_t>(parallel_->bucket_count())};
}

void Trainer::resume_from(FoundCheckpoint& found, const ResumeOptions& options) {
  control_.report(Operation::loading);
  const NamedTensors targets = state();
  load_state(found, *team_.communicator(), targets, untrained_part(run_.task.model->parameters()),
             {.from_average = options.begin == BeginWith::average_of_replicas,
              .rules = {.average_buffers = run_.task.recipe.parallel.average_buffers}});
  parallel_->resume_from(found.manifest.step, targets);
  control_.resume_from(found.manifest.step);
  if (options.in_output) checkpointer_->note_existing(found.manifest.step);
  is_evaluated_first_ = found.manifest.evaluation_pending;
  if (options.begin != BeginWith::average_of_weights) return;
  control_.report(Operation::averaging);
  parallel_->global_avg(/*will_revert=*/false);
}

TrainingEnd Trainer::train() {
  run_.task.model->train();
  if (const auto limit = run_.task.recipe.parallel.stall_s)
    control_.set_stall_limit(std::chrono::duration<double>(*limit), "parallel.stall_s");
  // A stop during an evaluation must reach begin_step(), even if no step is left.
  bool stops = !evaluate_first();
  while (stops || (step() < run_.plan.total_steps && !rules().stops())) {
    checkpointer_->check();
    if (!control_.begin_step(step() + 1)) {
      forward_->settle();
      meter_.finish_line(/*wait=*/true);
      return TrainingEnd::stopped;
    }
    if (trace_) trace_->begin_step(step() + 1);
    train_step();
    if (trace_) trace_->end_step();
    control_.report(Operation::logging);
    if (reporter_) reporter_->step(step(), epoch());
    if (has_train_line()) begin_train_line();
    meter_.finish_line(/*wait=*/false);
    stops = !save_and_evaluate();
    if (launch_.torchrun) warn_of_late_stop();
  }
  forward_->settle();
  meter_.finish_line(/*wait=*/true);
  control_.report(Operation::averaging);
  parallel_->global_avg(/*will_revert=*/false);  // waits for all exchanges
  if (parallel_->has_ema()) parallel_->use_ema();
  if (trace_) trace_->finish();
  data_warnings_.tell(team_, run_.task);
  return TrainingEnd::completed;
}

void Trainer::train_step() {
  const TraceSpan span(trace_.get(), kTrainingLane, "", {.step = step() + 1});
  const auto begin = Clock::now();
  const std::int64_t accumulation = run_.task.recipe.train.grad_accumulation;
  step_loss_scale_ = parallel_->loss_scale();
  forward_->begin_step();
  const BufferBackup backup(run_.task.model->buffers(), parallel_->scales_loss());
  for (std::int64_t a = 1; a <= accumulation; ++a) {
    parallel_->set_accumulate_grad(a < accumulation);
    micro_step(a - 1);
  }
  if (parallel_->overflowed()) backup.restore_non_finite();
  const double seconds = seconds_since(begin);
  forward_->end_step(seconds);
  stop_time_.saw_step(seconds);
}

// Adds the gradient of one micro-batch, counted from 0; the last one also makes the update.
void Trainer::micro_step(std::int64_t micro_batch) {
  const auto batch = next_batch();
  control_.report(Operation::forward);
  const at::Tensor loss = forward_->run(*batch, micro_batch);
  forward_->settle();  // the losses of the step before, now that the GPU has this forward to do
  const auto accumulation = static_cast<double>(run_.task.recipe.train.grad_accumulation);
  const double share = parallel_->loss_scale() / accumulation;
  backward(share == 1 ? loss : loss.mul(share));
}

// Takes the losses of each step, in order.
void Trainer::saw(const StepLoss& loss) {
  last_loss_ = loss.mean();
  if (team_.speaks()) loss_watch_.saw(last_loss_);
  meter_.add_step(last_loss_, loss.seconds);
}

std::unique_ptr<DeviceBatch> Trainer::next_batch() {
  const TraceSpan span(trace_.get(), kTrainingLane, "data wait");
  const auto begin = Clock::now();
  control_.report(Operation::waiting_for_data);
  auto batch = batches_->next();
  meter_.add_data_wait(seconds_since(begin));
  return batch;
}

// Mixing, update and the next exchange all happen in here.
void Trainer::backward(const at::Tensor& loss) {
  const TraceSpan span(trace_.get(), kTrainingLane, "backward");
  control_.report(Operation::backward);
  const std::int64_t before = step();
  try {
    run_backward(loss);
  } catch (const Error& error) {
    if (error.code() == ExitCode::diverged) forward_->settle_early();
    throw;
  }
  run_.task.model->settle_buffers();
  if (step() == before && !parallel_->accumulates_grad()) {
    throw UserError("no parameter of the model takes part in the loss of step " +
                    std::to_string(before + 1));
  }
}

// Every log.every_steps steps; a run with fewer steps has a line at its end.
bool Trainer::has_train_line() const {
  const std::int64_t every = run_.task.recipe.log.every_steps;
  return step() % every == 0 || (step() < every && is_last_step());
}

StepFacts Trainer::facts_of_step() {
  forward_->settle();
  const StepFacts facts{
      .step = step(),
      .epoch = epoch(),
      .lr = run_.plan.rates.schedule(step()),
      .loss = last_loss_,
      .grad_norm = parallel_->grad_norm(),
      .loss_scale = parallel_->scales_loss() ? std::optional(step_loss_scale_) : std::nullopt,
      .wrap_share = parallel_->wrap_share(),
      .update_samples = run_.plan.sampler->update_samples(),
      .between = step() % run_.task.recipe.log.every_steps != 0};
  const bool is_resumed = run_.plan.resumes && step() == run_.plan.first_step;
  return is_resumed ? meter_.kept(facts) : facts;
}

void Trainer::begin_train_line() {
  StepFacts facts = facts_of_step();
  facts.comm_wait_s = parallel_->take_wait_seconds();
  facts.gpu_memory_mb = take_peak_mb(run_.task.device.device);
  meter_.begin_line(facts);
}

// Shows a line of the metrics on the worker that speaks.
void Trainer::show(const TrainMetrics& metrics) {
  if (!reporter_) return;
  check_folder_();
  reporter_->train(metrics);
  if (!metrics.wrap_share) return;
  if (const auto warning = wrap_watch_.saw(metrics.step, *metrics.wrap_share)) log_.warn(*warning);
}

void Trainer::save(bool in_background) {
  const TraceSpan span(trace_.get(), kTrainingLane, "saving");
  meter_.finish_line(/*wait=*/true);  // lines up to this step are on disk before its checkpoint
  control_.report(Operation::saving);
  check_folder_();
  const DataPosition position = run_.plan.sampler->position(step());
  Checkpointer::Progress progress{.workers = team_.membership(),
                                  .step = step(),
                                  .epoch = position.epoch,
                                  .consumed = position.consumed,
                                  .epochs_done = epoch(),
                                  .evaluations = rules().state()};
  if (is_evaluated()) {
    progress.metrics = figures_of(*last_evaluation_);
  } else {
    progress.evaluation_pending = is_evaluation_due();
  }
  meter_.keep(facts_of_step());
  checkpointer_->save(progress, state(), in_background);
}

void Trainer::warn_of_late_stop() {
  if (const auto seconds = checkpointer_->take_seconds()) stop_time_.saw_save(*seconds);
  if (const auto warning = stop_time_.warning()) log_.warn(*warning);
}

std::filesystem::path Trainer::save_stopped() {
  checkpointer_->wait();
  if (!is_saved()) save(/*in_background=*/false);
  if (trace_) trace_->finish();
  data_warnings_.tell(team_, run_.task);
  return CheckpointFolder(folder_.checkpoints()).path_of(step());
}

bool Trainer::is_evaluation_due() const {
  if (!evaluator_) return false;
  return step() == 0 ? run_.task.recipe.eval.at_start : evaluations_.is_due(step(), run_.plan);
}

// Evaluates before the first step of this process, if due. Returns whether nobody asked to stop.
bool Trainer::evaluate_first() {
  if (!run_.plan.resumes) return !is_evaluation_due() || evaluate();
  if (!is_evaluated_first_) return true;
  if (evaluator_) return evaluate();
  if (is_saved()) checkpointer_->note_evaluation({}, rules().state());  // data.eval is gone
  return true;
}

// The save comes first, so that a failed evaluation costs no training. Returns whether nobody asked
// to stop during the evaluation.
bool Trainer::save_and_evaluate() {
  if (saves_.is_due(step(), run_.plan)) save(/*in_background=*/true);
  if (is_evaluation_due() && !evaluate()) return false;
  if (rules().stops() && saves_.is_on() && !is_saved()) save(/*in_background=*/true);
  return true;
}

// Returns whether nobody asked to stop meanwhile.
bool Trainer::evaluate() {
  const TraceSpan span(trace_.get(), kTrainingLane, "evaluation");
  forward_->settle();
  meter_.finish_line(/*wait=*/true);
  control_.report(Operation::averaging);
  std::optional<EvalMetrics> evaluation;
  try {
    evaluation = evaluate_average(*parallel_, *evaluator_, epoch());
  } catch (const SharedError& error) {
    save_unevaluated(error);
  }
  if (evaluation) note(*evaluation);
  return evaluation.has_value();
}

// All workers have the same error, so that they can save together.
void Trainer::save_unevaluated(const SharedError& error) {
  if (step() == run_.plan.first_step) throw error;  // nothing was trained
  const std::string saved = save_stopped().string();
  throw SharedError(error.code(), std::string(error.what()) + "\nAll steps until then are in '" +
                                      saved + "': --resume auto begins with the evaluation");
}

void Trainer::note(const EvalMetrics& evaluation) {
  last_evaluation_ = evaluation;
  if (reporter_) reporter_->evaluation(evaluation);
  const bool had_line = has_train_line();
  // A longer run would have no evaluation after the last step of this one, so rules ignore it.
  if (evaluations_.recurs(step(), run_.plan)) rules().saw(evaluation);
  if (const std::string news = rules().take_news(); !news.empty()) log_.info(news);
  if (rules().stops() && !had_line && has_train_line()) begin_train_line();
  data_warnings_.tell(team_, run_.task);
  if (!is_saved()) return;
  meter_.finish_line(/*wait=*/true);  // on disk before the checkpoint counts as evaluated
  control_.report(Operation::saving);
  checkpointer_->note_evaluation(figures_of(*last_evaluation_), rules().state());
}

void Trainer::finish() {
  checkpointer_->wait();
  control_.report(Operation::exporting);
  team_.agree("finite", [this] { finite_->check_trained(*run_.task.model, step()); });
  const RunEnd end{
      .step = step(),
      .stopped_early = rules().stops() ? rules().stop_text() : "",
      .files = export_models({.team = team_,
                              .recipe = run_.task.recipe,
                              .log = log_,
                              .higher_is_better = keeps_highest(run_.task.recipe.checkpoint)},
                             run_.task)};
  team_.agree("end", [&] {
    if (team_.speaks()) complete(end);
  });
}

void Trainer::complete(const RunEnd& end) {
  const PeakLr lr{.value = run_.plan.rates.peak, .given = run_.task.recipe.optimizer.lr};
  if (const auto warning = loss_watch_.warning(lr_text(lr, team_.size()))) log_.warn(*warning);
  reporter_->complete(end);
}

void Trainer::note_end(const std::string& status, const std::string& error) {
  const std::int64_t last = forward_->diverged_step().value_or(step() + 1) - 1;
  if (reporter_) reporter_->end(status, std::max(last, run_.plan.first_step), error);
}

}  // namespace decent
