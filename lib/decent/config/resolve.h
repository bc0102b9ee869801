#pragma once
// What is worked out from several keys, once each has been read.

#include "decent/config/document.h"
#include "decent/config/mistakes.h"
#include "decent/config/names.h"
#include "decent/config/recipe.h"

namespace decent::config {

/// Gives data.eval and data.predict the keys of data.train that they leave out, where they are of
/// its format and OptionKey::is_place does not say that the key is each source's own.
void inherit_source_keys(Value& root, const Names& names);

/// Reports combinations of valid values that are not valid together. `root` gives the positions.
void check_together(const Recipe& recipe, const Value& root, const Names& names,
                    Mistakes& mistakes);

/// Fills in the defaults that depend on other keys or on the recipe's file; `root` tells which keys
/// are given.
void resolve(Recipe& recipe, const Value& root, const std::filesystem::path& file,
             const Names& names, Mistakes& mistakes);

}  // namespace decent::config
