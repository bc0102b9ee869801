#include "decent/train/session.h"

#include <stdexcept>
#include <utility>

#include "decent/core/file.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

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
          .update_samples = run.plan.sampler->mean_update_samples(),
          .display = quiet ? ProgressDisplay::off : display_of(recipe.progress),
          .tensorboard = recipe.tensorboard};
}

}  // namespace

Session::Session(Run its_run, Team its_team, Log& its_log, SessionOptions its_options)
    : run(std::move(its_run)),
      team(std::move(its_team)),
      log(its_log),
      options(std::move(its_options)),
      folder(recipe().output),
      trace(make_trace(run, folder, team.rank())) {
  if (options.leaders.leads(team) && run.task.learned.is_whole())
    write_file(folder.data(), print_learned(run.task.learned));
  if (team.speaks()) {
    reporter =
        std::make_unique<Reporter>(folder, log, reporter_options(run, team.size(), log.quiet()));
  }
  const double farewell_s = recipe().parallel.farewell_s;
  if (farewell_s > 0 && team.communicator()->go_on_without(team.control().lost_workers()))
    farewell = std::chrono::duration<double>(farewell_s);
  parallel = method_of(run).make(
      run, team.communicator(),
      {.warn = [this](const std::string& text) { log.warn(text); }, .trace = trace});
}

}  // namespace decent
