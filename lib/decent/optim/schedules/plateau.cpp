// torch.optim.lr_scheduler.ReduceLROnPlateau

#include "decent/optim/plateau.h"

#include "decent/core/error.h"
#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

Schedule make(const ScheduleOptions& options) {
  if (options.plateau == nullptr)
    throw UserError("schedule plateau: there is nothing that looks at evaluations");
  return [plateau = options.plateau](std::int64_t step) { return plateau->lr(step); };
}

}  // namespace

Row plateau() {
  return {.name = "plateau",
          .arguments =
              [](const ScheduleOptions& o) {
                const PlateauOptions p = o.plateau ? o.plateau->options() : PlateauOptions{};
                const bool relative = p.better.relative;
                const bool higher = p.better.higher_is_better;
                return Options{{"metric", o.metric},
                               {"mode", std::string(higher ? "max" : "min")},
                               {"factor", p.factor},
                               {"patience", p.patience},
                               {"threshold", p.better.threshold},
                               {"threshold_mode", std::string(relative ? "rel" : "abs")},
                               {"cooldown", p.cooldown},
                               {"min_lr", p.min_lr},
                               {"eps", p.eps}};
              },
          .make = make,
          .follows_evaluations = true};
}

}  // namespace decent::schedules
