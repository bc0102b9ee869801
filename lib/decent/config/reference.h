#pragma once
// The users' reference of the recipe's keys, made from the tables that the loader uses.

#include <string>

#include "decent/config/names.h"

namespace decent {

/// Markdown: one table per section and one per format of data, with the type, default and meaning
/// of each key. docs/recipe.md contains it verbatim.
std::string recipe_reference(const config::Names& names);

}  // namespace decent
