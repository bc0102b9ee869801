#include "decent/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "decent/comm/lost_workers.h"
#include "decent/config/loader.h"
#include "decent/core/version.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/replica_loader.h"
#include "decent/task/metrics.h"
#include "decent/train/evaluation/evaluated_average.h"
#include "decent/train/fingerprint.h"
#include "decent/train/methods.h"
#include "decent/train/model_files.h"

namespace decent {
namespace {

bool copies_alike(const Session& session) { return method_of(session.run).copies_alike; }

CheckpointerOptions checkpointer_options(const Session& session) {
  const Recipe& recipe = session.recipe();
  return {.team = session.team,
          .leaders = session.options.leaders,
          .copies_alike = copies_alike(session),
          .folder = CheckpointFolder(session.folder.checkpoints()),
          .recipe = recipe.checkpoint,
          .higher_is_better = keeps_highest(recipe.checkpoint),
          .manifest = {.run = session.options.run_id,
                       .program = version_text(),
                       .recipe = print_recipe(recipe),
                       .facts = facts_of(session.run)},
          .data = print_if_whole(session.run.task.learned),
          .metrics = session.folder.metrics(),
          .before_publishing = [reporter = session.reporter.get()] {
            if (reporter != nullptr) reporter->sync();
          }};
}

double seconds_since_epoch(std::chrono::system_clock::time_point when) {
  return std::chrono::duration<double>(when.time_since_epoch()).count();
}

// Runs `work`, which returns whether the run goes on. It does not after a loss: the next
// begin_step() knows whether a step is left to do.
template <typename Work>
bool unless_given_up(const Work& work) {
  try {
    return work();
  } catch (const GivenUp&) {
    return false;
  }
}

}  // namespace

Trainer::Trainer(Run run, Team team, Log& log, SessionOptions options)
    : session_(std::move(run), std::move(team), log, std::move(options)),
      lines_(session_),
      step_(session_, lines_),
      finite_(*session_.run.task.model),
      evaluations_(session_.run.task.eval ? Cadence::of(session_.recipe().eval) : Cadence{}),
      evaluator_(evaluations_.is_on()
                     ? std::make_unique<Evaluator>(session_.run.task, session_.team)
                     : nullptr),
      saves_(Cadence::of(session_.recipe().checkpoint)),
      checkpointer_(checkpointer_options(session_)),
      stop_time_(
          checkpoint_bytes(state(), session_.team.member().local_size, copies_alike(session_))),
      data_warnings_(session_.folder.skipped(), log) {}

RunSize Trainer::size() const {
  return {.workers = session_.team.size(),
          .parameters = session_.parallel->parameter_count(),
          .buckets = static_cast<std::int64_t>(session_.parallel->bucket_count())};
}

// This worker's part of a checkpoint.
NamedTensors Trainer::state() const {
  NamedTensors state = session_.parallel->training_state();
  for (auto& entry : lines_.state()) state.push_back(std::move(entry));
  return state;
}

void Trainer::resume_from(FoundCheckpoint& found, BeginWith begin, bool in_output) {
  control().report(Operation::loading);
  const NamedTensors targets = state();
  TrainedParameters& parallel = *session_.parallel;
  load_state(found, *session_.team.communicator(), targets,
             untrained_part(session_.run.task.model->parameters()), begin,
             session_.recipe().parallel.average_buffers);
  parallel.resume_from(found.manifest.step, targets);
  control().resume_from(found.manifest.step);
  if (in_output) checkpointer_.note_existing(found.manifest.step);
  is_evaluated_first_ = found.manifest.evaluation_pending;
  if (begin == BeginWith::average_of_weights) {
    control().report(Operation::averaging);
    parallel.global_avg(/*will_revert=*/false);
  }
  const auto change = change_of_workers(found.manifest, session_.team.size(),
                                        seconds_since_epoch(std::chrono::system_clock::now()));
  if (session_.reporter && change) session_.reporter->resume(*change);
}

void Trainer::begin_farewells() {
  if (session_.farewell) control().begin_farewells(*session_.farewell);
}

// ---- the loop -------------------------------------------------------------------------------

TrainingEnd Trainer::train() {
  begin_training();
  // A stop or a loss during an evaluation must reach begin_step(), even if no step is left.
  bool goes_on = unless_given_up([this] { return evaluate_first(); });
  for (;;) {
    while (!goes_on || !session_.is_done()) {
      unless_given_up([this] {
        if (!control().in_farewell()) checkpointer_.check();
        return true;
      });
      if (!control().begin_step(step() + 1)) {
        settle();
        return control().in_farewell() ? TrainingEnd::lost : TrainingEnd::stopped;
      }
      stop_time_.saw_step(step_.run());
      if (!std::exchange(has_stepped_, true)) session_.options.first_step_done();
      goes_on = unless_given_up([this] { return end_step(); });
    }
    goes_on = unless_given_up([this] {
      end_training();
      return true;
    });
    if (goes_on) return TrainingEnd::completed;
  }
}

// Returns whether nobody asked to stop.
bool Trainer::end_step() {
  control().report(Operation::logging);
  lines_.end_step();
  if (lines_.has_line()) begin_line();
  lines_.finish_line(/*wait=*/false);
  const bool goes_on = save_and_evaluate();
  warn_of_late_stop();
  return goes_on;
}

void Trainer::begin_training() {
  session_.run.task.model->train();
  if (const auto limit = session_.recipe().parallel.stall_s)
    control().set_stall_limit(std::chrono::duration<double>(*limit), "parallel.stall_s");
}

// Everything about the steps so far is known and shown.
void Trainer::settle() {
  step_.settle();
  lines_.finish_line(/*wait=*/true);
}

void Trainer::begin_line() {
  step_.settle();
  lines_.begin_line();
}

void Trainer::end_training() {
  settle();
  TrainedParameters& parallel = *session_.parallel;
  // The weights are averaged for good now, and no farewell could save the last step any more.
  checkpointer_.wait();
  session_.team.agree("trained", [] {});  // nobody is still in the last step
  if (!control().end_farewells()) throw GivenUp("a worker is lost");
  control().report(Operation::averaging);
  parallel.global_avg(/*will_revert=*/false);  // waits for all exchanges
  if (parallel.has_ema()) parallel.use_ema();
  if (session_.trace) session_.trace->finish();
  data_warnings_.tell(session_.team, session_.run.task);
}

void Trainer::warn_of_late_stop() {
  if (!session_.options.torchrun) return;
  if (const auto seconds = checkpointer_.take_seconds()) stop_time_.saw_save(*seconds);
  if (const auto warning = stop_time_.warning()) session_.log.warn(*warning);
}

// ---- evaluations and checkpoints ------------------------------------------------------------

bool Trainer::is_evaluation_due() const {
  if (!evaluator_) return false;
  return step() == 0 ? session_.recipe().eval.at_start
                     : evaluations_.is_due(step(), session_.run.plan);
}

// Evaluates before the first step of this process, if due. Returns whether nobody asked to stop.
bool Trainer::evaluate_first() {
  if (!session_.run.plan.resumes) return !is_evaluation_due() || evaluate();
  if (!is_evaluated_first_) return true;
  if (evaluator_) return evaluate();
  if (is_saved()) checkpointer_.note_evaluation({}, rules().state());  // data.eval is gone
  return true;
}

// The save comes first, so that a failed evaluation costs no training. Returns whether nobody asked
// to stop during the evaluation.
bool Trainer::save_and_evaluate() {
  if (control().in_farewell()) return false;
  if (saves_.is_due(step(), session_.run.plan)) save(/*in_background=*/true);
  if (is_evaluation_due() && !evaluate()) return false;
  if (rules().stops() && saves_.is_on() && !is_saved()) save(/*in_background=*/true);
  return true;
}

// Returns whether nobody asked to stop meanwhile.
bool Trainer::evaluate() {
  const TraceSpan span(session_.trace.get(), kTrainingLane, "evaluation");
  settle();
  control().report(Operation::averaging);
  std::optional<EvalMetrics> evaluation;
  try {
    evaluation = evaluate_average(*session_.parallel, *evaluator_, session_.epoch());
  } catch (const SharedError& error) {
    save_unevaluated(error);
  }
  if (evaluation) note(*evaluation);
  return evaluation.has_value();
}

// All workers have the same error, so that they can save together.
void Trainer::save_unevaluated(const SharedError& error) {
  if (step() == session_.run.plan.first_step) throw error;  // nothing was trained
  const std::string saved = save_stopped().string();
  throw SharedError(error.code(), std::string(error.what()) + "\nAll steps until then are in '" +
                                      saved + "': --resume auto begins with the evaluation");
}

void Trainer::note(const EvalMetrics& evaluation) {
  last_evaluation_ = evaluation;
  session_.check_writable();
  if (session_.reporter) session_.reporter->evaluation(evaluation);
  const bool had_line = lines_.has_line();
  // A longer run would have no evaluation after the last step of this one, so rules ignore it.
  if (evaluations_.recurs(step(), session_.run.plan)) rules().saw(evaluation);
  if (const std::string news = rules().take_news(); !news.empty()) session_.log.info(news);
  if (rules().stops() && !had_line && lines_.has_line()) begin_line();
  data_warnings_.tell(session_.team, session_.run.task);
  if (!is_saved()) return;
  lines_.finish_line(/*wait=*/true);  // on disk before the checkpoint counts as evaluated
  control().report(Operation::saving);
  checkpointer_.note_evaluation(figures_of(*last_evaluation_), rules().state());
}

void Trainer::save(bool in_background) {
  const TraceSpan span(session_.trace.get(), kTrainingLane, "saving");
  lines_.finish_line(/*wait=*/true);  // lines up to this step are on disk before its checkpoint
  control().report(Operation::saving);
  session_.check_writable();
  step_.settle();
  lines_.keep();
  checkpointer_.save(progress(), state(), in_background);
}

Checkpointer::Progress Trainer::progress() {
  const DataPosition position = session_.run.plan.sampler->position(step());
  Checkpointer::Progress progress{.workers = session_.team.membership(),
                                  .step = step(),
                                  .epoch = position.epoch,
                                  .consumed = position.consumed,
                                  .epochs_done = session_.epoch(),
                                  .evaluations = rules().state()};
  if (is_evaluated()) {
    progress.metrics = figures_of(*last_evaluation_);
  } else {
    progress.evaluation_pending = is_evaluation_due();
  }
  return progress;
}

std::string Trainer::save_of_survivors() {
  control().arrive();
  control().report(Operation::saving);
  std::optional<std::string> why_not = "";
  if (control().saves_in_farewell() && step() > session_.run.plan.first_step) {
    step_.settle();
    lines_.keep();
    Checkpointer::Progress last = progress();
    last.lost_at = seconds_since_epoch(control().lost_at());
    why_not = checkpointer_.save_of_survivors(last, state(), session_.options.take_folder);
  }
  if (!why_not) {
    const CheckpointFolder checkpoints(session_.folder.checkpoints());
    return "The others have saved all steps in '" + checkpoints.path_of(step()).string() +
           "'; go on with --resume auto";
  }
  if (!control().farewell().saves())
    return "These workers save nothing, because as many others may still be there, or more";
  return "Nothing was saved after that" + (why_not->empty() ? "" : ": " + *why_not);
}

std::filesystem::path Trainer::save_stopped() {
  checkpointer_.wait();
  if (!is_saved()) save(/*in_background=*/false);
  if (session_.trace) session_.trace->finish();
  data_warnings_.tell(session_.team, session_.run.task);
  return CheckpointFolder(session_.folder.checkpoints()).path_of(step());
}

// ---- the end --------------------------------------------------------------------------------

void Trainer::finish() {
  const Team& team = session_.team;
  checkpointer_.wait();
  control().report(Operation::exporting);
  team.agree("finite", [this] { finite_.check_trained(*session_.run.task.model, step()); });
  const RunEnd end{
      .step = step(),
      .stopped_early = rules().stops() ? rules().stop_text() : "",
      .files = export_models({.team = team,
                              .recipe = session_.recipe(),
                              .log = session_.log,
                              .higher_is_better = keeps_highest(session_.recipe().checkpoint)},
                             session_.run.task)};
  team.agree("end", [&] {
    if (!session_.reporter) return;
    lines_.warn_of_losses();
    session_.reporter->complete(end);
  });
}

// Whether the worker that writes the run's files is lost, and this one is the lowest that is left
// in its own folder.
bool Trainer::speaks_for_lost() const {
  const Farewell farewell = control().farewell();
  return farewell.is_lost(Team::kSpeaker) &&
         session_.options.leaders.without(farewell.lost()).leads(session_.team);
}

void Trainer::note_end(const std::string& status, const std::string& error) {
  // The other part of a run that was cut in two may go on writing.
  if (control().in_farewell() && !control().farewell().saves()) return;
  if (speaks_for_lost()) {
    return end_for_lost_reporter(session_.folder, {.status = status, .step = step()},
                                 session_.recipe().log.every_steps, error);
  }
  const std::int64_t last = step_.diverged_step().value_or(step() + 1) - 1;
  if (session_.reporter)
    session_.reporter->end(status, std::max(last, session_.run.plan.first_step), error);
}

}  // namespace decent
