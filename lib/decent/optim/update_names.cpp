#include "decent/optim/update_names.h"

#include <type_traits>

#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/optim/rules/all.h"
#include "decent/optim/rules/find.h"

namespace decent {
namespace {

template <class... Rules>
std::vector<NamedOptions> table_of(rules::TypeList<Rules...>) {
  std::vector<NamedOptions> table;
  const auto add = [&]<class Rule>(std::type_identity<Rule>) {
    for (const rules::Name& name : Rule::kNames)
      table.push_back({.name = std::string(name.name), .keys = keys_of(Rule::kOptions)});
  };
  (add(std::type_identity<Rules>()), ...);
  return table;
}

}  // namespace

const std::vector<NamedOptions>& update_table() {
  static const std::vector<NamedOptions> table = table_of(rules::All());
  return table;
}

std::span<const std::string> update_names() {
  static const std::vector<std::string> names = names_in(update_table());
  return names;
}

bool update_takes(std::string_view name, std::string_view option) {
  bool takes = false;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name&) {
    for (const auto& each : Rule::kOptions) takes |= each.name == option;
  });
  return takes;
}

double default_weight_decay(std::string_view name) {
  double decay = 0;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    decay = own.weight_decay;
  });
  return decay;
}

bool update_bounded_by_lr(std::string_view name) {
  bool bounded = false;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name&) {
    bounded = Rule::kStepBoundedByLr;
  });
  return bounded;
}

std::string updates_bounded_by_lr() {
  std::vector<std::string> names;
  for (const std::string& name : update_names())
    if (update_bounded_by_lr(name)) names.push_back(name);
  return join(names);
}

std::optional<OptionConflict> update_conflict(std::string_view name, const Options& given) {
  std::optional<OptionConflict> conflict;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name&) {
    if constexpr (rules::HasConflicts<Rule>) {
      typename Rule::Options options;
      assign_options(options, Rule::kOptions, given);
      conflict = Rule::conflict(options);
    }
  });
  return conflict;
}

}  // namespace decent
