#pragma once
// Finds a rule by one of its names, and visits its options.

#include <string>
#include <string_view>
#include <type_traits>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/rules/all.h"

namespace decent::rules {

/// Calls visit(key in a recipe, the rule's own option, the user's value) for each option of the
/// rule.
template <class Options, class Visit>
void visit_options(Options& own, const UpdateOptions& given, const Visit& visit) {
  if constexpr (requires { own.momentum; }) visit("momentum", own.momentum, given.momentum);
  if constexpr (requires { own.nesterov; }) visit("nesterov", own.nesterov, given.nesterov);
  if constexpr (requires { own.beta1; }) visit("betas", own.beta1, given.beta1);
  if constexpr (requires { own.beta2; }) visit("betas", own.beta2, given.beta2);
  if constexpr (requires { own.eps; }) visit("eps", own.eps, given.eps);
  if constexpr (requires { own.accum_iter; }) visit("accum_iter", own.accum_iter, given.accum_iter);
  if constexpr (requires { own.alpha; }) visit("alpha", own.alpha, given.alpha);
}

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
