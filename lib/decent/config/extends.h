#pragma once
// `extends: FILE` in a recipe, or a list of files: the recipe is what those files say, with its own
// keys on top.

#include <filesystem>
#include <string>

#include "decent/config/document.h"
#include "decent/config/loader.h"
#include "decent/config/mistakes.h"
#include "decent/config/names.h"

namespace decent::config {

/// A recipe may extend one that extends one, and so on, this often.
inline constexpr std::size_t kMostExtended = 16;

/// The most files that a recipe may read by `extends`, one that is read twice counted twice.
inline constexpr std::size_t kMostExtendedFiles = 64;

/// Replaces `extends` in `root`, the document of `file`, by the contents of the files that it
/// names. Their paths are relative to the folder of the file that names them. Later files win over
/// earlier ones, and `root` wins over all: mappings are merged key by key, lists and scalars are
/// replaced. A null in a recipe that extends others removes the key, unless null is a value of the
/// key. `names`: the valid names.
///
/// Each file is added to `mistakes`, which gives its values their origin. Files that cannot be read
/// and texts that are no recipe are reported.
void extend(Value& root, const std::filesystem::path& file, const Names& names,
            const Variables& environment, Mistakes& mistakes);

/// Parses the document of the recipe with this origin. Nothing but a mapping is a recipe: anything
/// else is reported, and the value is broken.
Value parse_mapping(const std::string& text, int origin, Mistakes& mistakes);

}  // namespace decent::config
