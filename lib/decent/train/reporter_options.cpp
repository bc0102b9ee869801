#include "decent/train/reporter_options.h"

#include <stdexcept>

namespace decent {
namespace {

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

}  // namespace

ReporterOptions reporter_options(const Run& run, int workers, bool quiet) {
  const LogRecipe& recipe = run.task.recipe.log;
  return {.workers = workers,
          .first_step = run.plan.first_step,
          .total_steps = run.plan.total_steps,
          .update_samples = run.plan.sampler->update_samples(),
          .display = quiet ? ProgressDisplay::off : display_of(recipe.progress),
          .tensorboard = recipe.tensorboard};
}

}  // namespace decent
