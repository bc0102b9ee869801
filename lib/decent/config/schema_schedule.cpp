// The keys of the learning rate's course.

#include "decent/config/schema.h"
#include "decent/optim/schedule.h"

namespace decent::config {
namespace {

// A key that some schedules look at, which its meaning names.
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
          "Course of the learning rate, with the names and arguments of torch.optim.lr_scheduler.");
  argument(table, "warmup_steps", &R::warmup_steps,
           "Updates over which the learning rate rises to its peak")
      .range(at_least(0));
  argument(table, "t_max", &R::t_max,
           "Updates over which it falls; null: all updates after the warm-up")
      .range(at_least(1));
  argument(table, "eta_min", &R::eta_min, "Learning rate that it falls to").range(at_least(0));
  argument(table, "warmup_decay", &R::warmup_decay, "Share of the peak at which the warm-up starts")
      .range(within(0, 1));
  argument(table, "start_factor", &R::start_factor, "Share of lr in the first update")
      .range(above_up_to(0, 1));
  argument(table, "end_factor", &R::end_factor, "Share of lr after total_iters updates")
      .range(within(0, 1));
  argument(table, "total_iters", &R::total_iters,
           "Updates from one to the other; null: all updates")
      .range(at_least(1));
  argument(table, "step_size", &R::step_size, "Updates after which gamma is applied")
      .range(at_least(1));
  argument(table, "gamma", &R::gamma, "Factor; null: 0.1 for step").range(above(0));
  argument(table, "total_steps", &R::total_steps, "Updates of the cycle; null: all updates")
      .range(at_least(1));
  argument(table, "pct_start", &R::pct_start, "Share of the cycle in which it rises")
      .range(within(0, 1));
  argument(table, "anneal_strategy", &R::anneal_strategy, "How it goes from one value to the next");
  argument(table, "div_factor", &R::div_factor, "The first learning rate is lr divided by it")
      .range(above(0));
  argument(table, "final_div_factor", &R::final_div_factor,
           "The last one is the first divided by it")
      .range(above(0));
  argument(table, "three_phase", &R::three_phase,
           "Fall to the first learning rate as fast as it rose, then further");
  argument(table, "metric", &R::metric, "The metric of evaluations that must improve")
      .one_of(&Names::metrics);
  argument(table, "mode", &R::mode,
           "Whether lower or higher values are better; null: as it is for the metric");
  argument(table, "factor", &R::factor, "What the learning rate is multiplied with")
      .range(from_to_below(0, 1));
  argument(table, "patience", &R::patience,
           "Evaluations in a row without improvement that it outlasts")
      .range(at_least(0));
  argument(table, "threshold", &R::threshold,
           "How much better than the best an improvement is, at least")
      .range(at_least(0));
  argument(table, "threshold_mode", &R::threshold_mode,
           "Whether threshold is a share of the best, or a difference");
  argument(table, "cooldown", &R::cooldown,
           "Evaluations after a fall of which none counts as without improvement")
      .range(at_least(0));
  argument(table, "min_lr", &R::min_lr, "The least learning rate").range(at_least(0));
  argument(table, "eps", &R::eps, "A fall by less than this is none").range(at_least(0));
  return table;
}

}  // namespace decent::config
