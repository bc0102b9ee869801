#pragma once
// What other training programs call our keys, so that a user who comes from them is told ours.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace decent::config {

struct ForeignName {
  std::string_view theirs;  // lower case, words joined by _
  std::string_view ours;    // the dotted key, or a section; empty where the recipe has none
  std::string_view note;    // more on that key; or, where there is none, what to do
};

/// Every name that is known.
std::span<const ForeignName> foreign_names();

/// The row of a name as a user wrote it: in any case, with - for _; null where it is not known.
const ForeignName* find_foreign_name(std::string_view name);

/// "'optimizer.lr'", "'seed' at the top".
std::string quoted_key(std::string_view key);

/// "here it is 'optimizer.lr'" of a name that is not one of our keys; nothing where it is not
/// known.
std::optional<std::string> foreign_name_advice(std::string_view name);

/// What to do instead of a flag that the program does not have and that is a key of the recipe, by
/// our name or another program's: "it is a key of the recipe: --set optimizer.lr=VALUE". Nothing
/// where it is neither. `flag` begins with its dashes.
std::optional<std::string> flag_advice(std::string_view flag);

}  // namespace decent::config
