#pragma once
// `${NAME}` and `${NAME:-default}` in the values of a recipe. Runs after YAML parsing, so that a
// variable never changes the structure; a plain scalar is then typed as if its new text had been
// written plainly.

#include "decent/config/document.h"
#include "decent/config/loader.h"
#include "decent/config/mistakes.h"

namespace decent::config {

/// Replaces the variables in every scalar of the tree; keys stay as they are. `$${` becomes a
/// literal `${`. A scalar with a mistake (variable unset, malformed) is reported and becomes
/// broken.
void expand_environment(Value& root, const Variables& environment, Mistakes& mistakes);

}  // namespace decent::config
