#pragma once
// What is worked out from several keys, once each has been read.

#include "decent/config/document.h"
#include "decent/config/mistakes.h"
#include "decent/config/names.h"
#include "decent/config/recipe.h"

namespace decent::config {

/// Reports combinations of valid values that are not valid together. `root` gives the positions.
void check_together(const Recipe& recipe, const Value& root, const Names& names,
                    Mistakes& mistakes);

/// Fills in the defaults that depend on other keys or on the recipe's file; `root` tells which keys
/// are given.
void resolve(Recipe& recipe, const Value& root, const std::filesystem::path& file,
             const Names& names, Mistakes& mistakes);

}  // namespace decent::config
