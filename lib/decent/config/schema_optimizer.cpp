// The keys of section `optimizer`: its own, and the options of all optimizers (optim/rules).

#include <cmath>
#include <variant>

#include "decent/config/schema.h"
#include "decent/optim/update_names.h"

namespace decent::config {
namespace {

using enum OnResume;

// "0.1 for adamw, accum_adamw": the optimizers whose default, a printed value, is not the usual
// one.
std::string unusual_defaults(const std::string& usual,
                             const std::function<std::string(const UpdateDefaults&)>& print) {
  std::string text;
  std::string last;
  for (const std::string& name : update_names()) {
    const std::string printed = print(update_defaults(name));
    if (printed.empty() || printed == usual) continue;
    text += printed == last ? ", " + name : (text.empty() ? "" : ", ") + printed + " for " + name;
    last = printed;
  }
  return text;
}

template <class T>
void add_option(Table<OptimizerRecipe>& table, const UpdateOption& option) {
  const auto print = [](const UpdateValue& value) { return Codec<T>::print(std::get<T>(value)); };
  const auto own_default = [&](const UpdateDefaults& defaults) {
    const auto found = defaults.options.find(option.name);
    return found == defaults.options.end() ? "" : print(found->second);
  };
  const std::string unusual = unusual_defaults(print(option.usual), own_default);
  Interval range = at_least(option.at_least);
  if (std::isfinite(option.below)) range = from_to_below(option.at_least, option.below);
  table
      .key_at<T>(option.name,
                 [name = option.name](OptimizerRecipe& recipe) -> T& {
                   return std::get<T>(recipe.options.at(name));
                 })
      .range(range)
      .doc(option.meaning + takers(update_names(), update_takes, option.name.c_str()) +
           (unusual.empty() ? "" : "; default " + unusual) + ".");
}

void add_options(Table<OptimizerRecipe>& table) {
  for (const UpdateOption& option : update_options()) {
    std::visit([&]<class T>(const T&) { add_option<T>(table, option); }, option.usual);
  }
}

}  // namespace

Table<OptimizerRecipe> make_optimizer_table() {
  using R = OptimizerRecipe;
  Table<R> table;
  table.key("name", &R::name)
      .one_of([](const Names&) {
        return std::vector<std::string>(update_names().begin(), update_names().end());
      })
      .on_resume(same)
      .doc("The update rule.");
  table.key("lr", &R::lr).range(above(0)).doc("Peak learning rate.");
  table.key("lr_scaling", &R::lr_scaling)
      .doc("`sqrt`: multiply lr by the square root of the number of workers, before the schedule.");
  add_options(table);
  const auto decay = [](const UpdateDefaults& defaults) {
    return number_text(defaults.weight_decay);
  };
  table.key("weight_decay", &R::weight_decay)
      .range(at_least(0))
      .doc("Weight decay; null: " + unusual_defaults("0", decay) + ", else 0.");
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

}  // namespace decent::config
