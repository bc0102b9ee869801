#include "decent/optim/update_names.h"

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

}  // namespace

std::span<const std::string> update_names() {
  static const std::vector<std::string> names = names_of(rules::All());
  return names;
}

UpdateDefaults update_defaults(std::string_view name) {
  UpdateDefaults defaults;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    defaults = {.weight_decay = own.weight_decay,
                .momentum = own.momentum,
                .betas = {rules::AdamOptions().beta1, rules::AdamOptions().beta2}};
    const typename Rule::Options options;
    if constexpr (requires { options.beta2; }) defaults.betas = {options.beta1, options.beta2};
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
  bool takes = false;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name&) {
    typename Rule::Options options;
    rules::visit_options(options, {}, [&](std::string_view key, const auto&, const auto&) {
      takes = takes || key == option;
    });
  });
  return takes;
}

}  // namespace decent
