#include "decent/optim/update_names.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "decent/optim/rules/all.h"
#include "decent/optim/rules/find.h"

namespace decent {
namespace {

template <class... Rules>
std::vector<std::string> names_of(rules::TypeList<Rules...>) {
  std::vector<std::string> names;
  const auto add = [&](const auto& of_rule) {
    for (const rules::Name& name : of_rule) names.emplace_back(name.name);
  };
  (add(Rules::kNames), ...);
  return names;
}

template <class Rule>
UpdateValue in_recipes(const rules::Option<typename Rule::Options>& option) {
  if (option.in_recipes) return *option.in_recipes;
  static constexpr typename Rule::Options kDefaults;
  return rules::value_of(kDefaults, option);
}

template <class... Rules>
std::vector<UpdateOption> options_of(rules::TypeList<Rules...>) {
  std::vector<UpdateOption> all;
  const auto add = [&]<class Rule>(std::type_identity<Rule>) {
    for (const auto& option : Rule::kOptions) {
      const bool known = std::ranges::any_of(
          all, [&](const UpdateOption& each) { return each.name == option.name; });
      if (known) continue;
      all.push_back({.name = std::string(option.name),
                     .meaning = std::string(option.meaning),
                     .usual = in_recipes<Rule>(option),
                     .at_least = option.range.at_least,
                     .below = option.range.below});
    }
  };
  (add(std::type_identity<Rules>()), ...);
  return all;
}

}  // namespace

std::span<const std::string> update_names() {
  static const std::vector<std::string> names = names_of(rules::All());
  return names;
}

const std::vector<UpdateOption>& update_options() {
  static const std::vector<UpdateOption> options = options_of(rules::All());
  return options;
}

const UpdateOptions& usual_update_options() {
  static const UpdateOptions usual = [] {
    UpdateOptions values;
    for (const UpdateOption& option : update_options()) values.emplace(option.name, option.usual);
    return values;
  }();
  return usual;
}

UpdateDefaults update_defaults(std::string_view name) {
  UpdateDefaults defaults;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    defaults.weight_decay = own.weight_decay;
    for (const auto& option : Rule::kOptions)
      defaults.options.emplace(option.name, in_recipes<Rule>(option));
  });
  return defaults;
}

bool update_bounded_by_lr(std::string_view name) {
  bool bounded = false;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name&) {
    bounded = Rule::kStepBoundedByLr;
  });
  return bounded;
}

bool update_takes(std::string_view name, std::string_view option) {
  return update_defaults(name).options.contains(option);
}

}  // namespace decent
