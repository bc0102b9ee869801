#pragma once
// The reference of the recipe's keys for users, from the tables that the loader reads by.

#include <string>

#include "decent/config/names.h"

namespace decent {

/// Markdown: one table per section, of all keys with type, default and meaning, and one per
/// format of data. docs/recipe.md contains it verbatim.
std::string recipe_reference(const config::Names& names);

}  // namespace decent
