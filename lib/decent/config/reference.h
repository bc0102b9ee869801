#pragma once
// The reference of the recipe's keys for users, from the tables that the loader reads by.

#include <string>

namespace decent {

/// Markdown: one table per section, of all keys with type, default and meaning. docs/recipe.md
/// contains it verbatim.
std::string recipe_reference();

}  // namespace decent
