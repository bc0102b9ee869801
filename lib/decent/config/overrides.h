#pragma once
// --set a.b=VALUE: changes to the document of a recipe before it is read.

#include <span>
#include <string>

#include "decent/config/document.h"
#include "decent/config/mistakes.h"

namespace decent::config {

/// Applies the overrides in order and makes missing keys and sections. Positions in the n-th
/// override have origin n. An override that cannot be applied is reported and skipped. `root` is a
/// mapping.
void apply_overrides(Value& root, std::span<const std::string> overrides, Mistakes& mistakes);

}  // namespace decent::config
