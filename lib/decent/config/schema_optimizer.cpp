// The keys of sections `optimizer` and `schedule`: their own, and the options of all optimizers
// (optim/rules) and schedules (optim/schedules).

#include "decent/config/option_keys.h"
#include "decent/config/schema.h"
#include "decent/optim/schedule.h"
#include "decent/optim/update_names.h"

namespace decent::config {

using enum OnResume;

Table<OptimizerRecipe> make_optimizer_table() {
  using R = OptimizerRecipe;
  Table<R> table;
  table.key("name", &R::name)
      .one_of([](const Names&) { return names_in(update_table()); })
      .on_resume(same)
      .doc("The update rule.");
  table.key("lr", &R::lr).range(above(0)).doc("Peak learning rate.");
  table.key("lr_scaling", &R::lr_scaling)
      .doc("`sqrt`: multiply lr by the square root of the number of workers, before the schedule.");
  add_rows(
      table, [](const Names&) { return update_table(); }, &R::options);
  const auto decay = [](const NamedOptions& row) {
    return number_text(default_weight_decay(row.name));
  };
  table.key("weight_decay", &R::weight_decay)
      .range(at_least(0))
      .doc("Weight decay; null: " + unusual_values("0", update_table(), decay) + ", else 0.");
  table.key("ema", &R::ema)
      .range(from_to_below(0, 1))
      .doc(
          "Decay of an exponential moving average of the weights; evaluations and exports use this "
          "average instead of the weights. null: none.");
  table.key("param_groups", &R::param_groups)
      .shapes_exchange()
      .doc(
          "Groups of parameters with their own settings; the first match wins. Without any groups, "
          "tensors of fewer than 2 dimensions do not decay.");
  return table;
}

const std::vector<NamedOptions>& links() {
  static const std::vector<NamedOptions> all = [] {
    std::vector<NamedOptions> rows = schedule_table();
    std::erase_if(rows,
                  [](const NamedOptions& row) { return !schedule_fits_into_chain(row.name); });
    return rows;
  }();
  return all;
}

Table<ScheduleLink> link_table(const NamedOptions& schedule) {
  using R = ScheduleLink;
  Table<R> table;
  table.required("name", &R::name)
      .one_of([](const Names&) { return names_in(links()); })
      .doc("Name of the schedule; its own keys stand beside it.");
  table.key("steps", &R::steps)
      .range(at_least(1))
      .doc("Updates until the next schedule begins; null, for the last one: all that are left.");
  table.key("lr_scale", &R::lr_scale)
      .range(above(0))
      .doc("Factor for the learning rate of this schedule.");
  for (const OptionKey& key : schedule.keys)
    table.add_key(std::make_unique<OptionOf<R>>(key, &R::options));
  return table;
}

Table<ScheduleRecipe> make_schedule_table() {
  using R = ScheduleRecipe;
  Table<R> table;
  table.key("name", &R::name)
      .one_of([](const Names&) { return names_in(schedule_table()); })
      .doc(
          "Schedule of the learning rate, with the names and arguments of "
          "torch.optim.lr_scheduler.");
  add_rows(
      table, [](const Names&) { return schedule_table(); }, &R::options);
  table.key("chain", &R::chain)
      .doc(
          "Schedules one after another, each from its own beginning (chain). With this key, "
          "`name: chain` can be left out.");
  return table;
}

}  // namespace decent::config
