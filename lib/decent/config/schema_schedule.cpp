// The keys of section `schedule`.

#include "decent/config/schema.h"
#include "decent/optim/schedule.h"

namespace decent::config {
namespace {

// A key that only some schedules use; its meaning names them.
template <class T>
auto& argument(Table<ScheduleRecipe>& table, const char* name, T ScheduleRecipe::*member,
               const std::string& meaning) {
  return table.key(name, member)
      .doc(meaning + takers(schedule_names(), schedule_takes, name) + ".");
}

}  // namespace

Table<ScheduleRecipe> make_schedule_table() {
  using R = ScheduleRecipe;
  Table<R> table;
  table.key("name", &R::name)
      .one_of([](const Names&) { return schedule_names(); })
      .doc(
          "Schedule of the learning rate, with the names and arguments of "
          "torch.optim.lr_scheduler.");
  argument(table, "warmup_steps", &R::warmup_steps,
           "Updates over which the learning rate rises to its peak")
      .range(at_least(0));
  argument(table, "t_max", &R::t_max,
           "Updates over which the learning rate falls; null: all updates after the warm-up")
      .range(at_least(1));
  argument(table, "eta_min", &R::eta_min, "Learning rate at the end of the fall")
      .range(at_least(0));
  argument(table, "warmup_decay", &R::warmup_decay,
           "Share of the peak learning rate at which the warm-up starts")
      .range(within(0, 1));
  argument(table, "start_factor", &R::start_factor, "Share of lr in the first update")
      .range(above_up_to(0, 1));
  argument(table, "end_factor", &R::end_factor, "Share of lr after total_iters updates")
      .range(within(0, 1));
  argument(table, "total_iters", &R::total_iters,
           "Updates from start_factor to end_factor; null: all updates")
      .range(at_least(1));
  argument(table, "step_size", &R::step_size, "Multiply the learning rate by gamma every N updates")
      .range(at_least(1));
  argument(table, "gamma", &R::gamma, "Factor for the learning rate; null: 0.1 for step")
      .range(above(0));
  argument(table, "total_steps", &R::total_steps, "Updates of the cycle; null: all updates")
      .range(at_least(1));
  argument(table, "pct_start", &R::pct_start, "Share of the cycle in which the learning rate rises")
      .range(within(0, 1));
  argument(table, "anneal_strategy", &R::anneal_strategy,
           "Curve from one learning rate to the next: a cosine or a line");
  argument(table, "div_factor", &R::div_factor,
           "The first learning rate is lr divided by this number")
      .range(above(0));
  argument(table, "final_div_factor", &R::final_div_factor,
           "The last learning rate is the first one divided by this number")
      .range(above(0));
  argument(table, "three_phase", &R::three_phase,
           "Fall back to the first learning rate in as many updates as the rise took, then fall "
           "further");
  argument(table, "metric", &R::metric, "The evaluation metric that must improve")
      .one_of(&Names::metrics);
  argument(
      table, "mode", &R::mode,
      "Whether lower or higher values of the metric are better; null: as is usual for this metric");
  argument(table, "factor", &R::factor, "Factor by which each fall multiplies the learning rate")
      .range(from_to_below(0, 1));
  argument(table, "patience", &R::patience,
           "Evaluations in a row without improvement that are tolerated before a fall")
      .range(at_least(0));
  argument(
      table, "threshold", &R::threshold,
      "A value counts as an improvement if it is better than the best so far by more than this")
      .range(at_least(0));
  argument(table, "threshold_mode", &R::threshold_mode,
           "Whether threshold is a share of the best value or a difference from it");
  argument(table, "cooldown", &R::cooldown,
           "Evaluations after a fall that never count as evaluations without improvement")
      .range(at_least(0));
  argument(table, "min_lr", &R::min_lr, "Lowest learning rate").range(at_least(0));
  argument(table, "eps", &R::eps, "A fall by no more than this number is not made")
      .range(at_least(0));
  return table;
}

}  // namespace decent::config
