#pragma once
// Checks and defaults that involve several keys, after each key has been read.

#include "decent/config/document.h"
#include "decent/config/mistakes.h"
#include "decent/config/names.h"
#include "decent/config/recipe.h"

namespace decent::config {

/// Copies keys of data.train that data.eval and data.predict leave out, if these have the same
/// format. Keys with OptionKey::is_place are not copied: each source has its own.
void inherit_source_keys(Value& root, const Names& names);

/// Reports combinations of valid values that are not valid together. `root` gives the positions.
void check_together(const Recipe& recipe, const Value& root, const Names& names,
                    Mistakes& mistakes);

/// Fills in the defaults that depend on other keys or on the recipe's file; `root` shows which keys
/// are given.
void resolve(Recipe& recipe, const Value& root, const std::filesystem::path& file,
             const Names& names, Mistakes& mistakes);

}  // namespace decent::config
