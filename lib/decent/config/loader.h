#pragma once
// From the text of a recipe to a validated Recipe. Strict: all mistakes are reported together.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/config/names.h"
#include "decent/config/recipe.h"
#include "decent/core/environment.h"

namespace decent {

/// Loads the recipe at `file` and applies `overrides` ("a.b=VALUE", VALUE is YAML, later ones win).
/// `names`: the valid names. `${NAME}` is looked up in `environment`; tests pass their own.
///
/// Throws UserError with one line per mistake, "file:line:column: key: what is wrong, what would be
/// valid" (the file is the recipe's or one that it extends), or
/// "--set a.b=VALUE: .." for an override; at most five lines for one mistake.
Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const config::Names& names, const Variables& environment = environment_variable);

/// The recipe's file and all that it extends, in the order in which they are read.
std::vector<std::filesystem::path> recipe_files(
    const std::filesystem::path& file, const Variables& environment = environment_variable);

/// The same as load_recipe for a text in memory. `file` gives the name in messages, the default of
/// `name`, and the folder to which paths are relative.
Recipe parse_recipe(const std::string& text, const std::filesystem::path& file,
                    std::span<const std::string> overrides, const config::Names& names,
                    const Variables& environment = environment_variable);

/// The recipe as YAML with every key. parse_recipe reads it back to an equal Recipe from any
/// folder.
std::string print_recipe(const Recipe& recipe);

/// Every dotted key with its value on one line, in the order of the reference.
std::vector<std::pair<std::string, std::string>> recipe_values(const Recipe& recipe);

/// The default of every dotted key, printed, for a recipe with this recipe's optimizer and method;
/// empty for a required key. `name` and `output`, whose defaults depend on other things, are left
/// out.
std::vector<std::pair<std::string, std::string>> recipe_defaults(const Recipe& recipe,
                                                                 const config::Names& names = {});

}  // namespace decent
