#pragma once
// Several files as one data source.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decent/data/source.h"

namespace decent {

/// The files that paths, braces and wildcards name. Braces come first, as in a shell: {a,b} is each
/// of its words, {000..099} each number of the range, with as many digits if it has zeros in front.
/// The matches of a wildcard
/// (*, ?, [..]) come in the order of names, all else in the given order. The name of an existing
/// file or folder is never a pattern. Throws UserError if a wildcard matches nothing, and for a
/// range of more than a million numbers.
std::vector<std::filesystem::path> expand_globs(std::span<const std::filesystem::path> paths);

/// A source of the samples of all files, one file after another. Throws UserError naming the files
/// if they do not have the same fields.
std::unique_ptr<Source> open_shards(
    std::span<const std::filesystem::path> files,
    const std::function<std::unique_ptr<Source>(const std::filesystem::path&)>& open);

/// A source of the samples of all sources, of which there is at least one; they have the same
/// fields and classes. `names` are the names of their files.
std::unique_ptr<Source> concatenated(std::vector<std::unique_ptr<Source>> sources,
                                     std::vector<std::string> names);

}  // namespace decent
