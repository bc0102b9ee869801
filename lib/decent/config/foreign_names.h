#pragma once
// The names that other training programs use for our keys, so that their users are told ours.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decent/config/names.h"

namespace decent::config {

struct ForeignName {
  std::string_view theirs;  // lower case, words joined by _
  std::string_view ours;    // the dotted key, or a section; empty if the recipe has none
  std::string_view note;    // more about our key; if there is none, what to do instead
};

/// All known names.
std::span<const ForeignName> foreign_names();

/// The row of a name as a user wrote it, in any case and with - or _; null if it is not known.
const ForeignName* find_foreign_name(std::string_view name);

/// "'optimizer.lr'", "'seed' at the top".
std::string quoted_key(std::string_view key);

/// "here it is 'optimizer.lr'" for a name that is not one of our keys; nothing if it is not known.
std::optional<std::string> foreign_name_advice(std::string_view name);

/// Advice for an unknown flag that is a key of the recipe, by our name or another program's: "it is
/// a key of the recipe: --set optimizer.lr=VALUE". Nothing if it is not. `flag` begins with its
/// dashes.
std::optional<std::string> flag_advice(std::string_view flag, const Names& names);

}  // namespace decent::config
