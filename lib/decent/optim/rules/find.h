#pragma once
// Finds a rule by one of its names.

#include <string>
#include <string_view>
#include <type_traits>

#include "decent/core/error.h"
#include "decent/core/option_table.h"
#include "decent/core/text.h"
#include "decent/optim/rules/all.h"
#include "decent/optim/update_names.h"

namespace decent::rules {

/// Calls found(the rule as a type, its name) if the rule has that name.
template <class Rule, class Found>
bool find_in(std::string_view wanted, const Found& found) {
  for (const Name& name : Rule::kNames) {
    if (name.name != wanted) continue;
    found(std::type_identity<Rule>(), name);
    return true;
  }
  return false;
}

template <class... Rules, class Found>
void find_among(TypeList<Rules...>, std::string_view wanted, const Found& found) {
  if ((find_in<Rules>(wanted, found) || ...)) return;
  throw UserError("unknown update '" + std::string(wanted) + "'; valid: " + join(update_names()));
}

/// The same for the rule of that name in the list. Throws UserError, which lists all names, if
/// there is none.
template <class Found>
void find(std::string_view wanted, const Found& found) {
  find_among(All(), wanted, found);
}

}  // namespace decent::rules
