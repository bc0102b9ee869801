#pragma once
// `${NAME}` and `${NAME:-default}` in the values of a recipe. They are replaced after YAML parsing,
// so that a variable never changes the structure; an unquoted scalar gets the type of its new text.

#include "decent/config/document.h"
#include "decent/config/loader.h"
#include "decent/config/mistakes.h"

namespace decent::config {

/// Replaces the variables in every scalar of the tree; keys stay as they are. `$${` becomes a
/// literal `${`. A scalar with a mistake (unset variable, malformed) is reported and becomes
/// broken. `path` is the dotted key of the root, for messages.
void expand_environment(Value& root, const Variables& environment, Mistakes& mistakes,
                        const std::string& path = "");

}  // namespace decent::config
