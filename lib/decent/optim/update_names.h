#pragma once
// The names, options and defaults of optimizers, for make_update() and programs that configure it.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/option.h"
#include "decent/core/options.h"

namespace decent {

/// adamw, adam, sgd, ..: the names of all rules (rules/all.h), in their order.
std::span<const std::string> update_names();

/// All optimizers with the options that they take; the defaults are those of recipes.
const std::vector<NamedOptions>& update_table();

/// Whether that optimizer takes an option. This and the functions below throw UserError for an
/// unknown optimizer, listing the valid ones.
bool update_takes(std::string_view name, std::string_view option);

/// The weight decay of recipes that give none.
double default_weight_decay(std::string_view name);

/// Whether no gradient moves a weight by more than a few learning rates in one step of this
/// optimizer.
bool update_bounded_by_lr(std::string_view name);
/// "adamw, adam, ..": all for which that holds.
std::string updates_bounded_by_lr();

/// Options of that optimizer that do not go together. Throws UserError for a value of another type.
std::optional<OptionConflict> update_conflict(std::string_view name, const Options& options);

}  // namespace decent
