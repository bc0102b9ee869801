#pragma once
// Several files as one data source.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "decent/data/source.h"

namespace decent {

/// The files that paths and wildcards (*, ?, [..]) stand for: paths in the order given, what a
/// wildcard matches in the order of names. Throws UserError where a wildcard matches nothing.
std::vector<std::filesystem::path> expand_globs(std::span<const std::filesystem::path> paths);

/// The samples of all files one after the other. Throws UserError naming the files where they do
/// not have the same fields.
std::unique_ptr<Source> open_shards(
    std::span<const std::filesystem::path> files,
    const std::function<std::unique_ptr<Source>(const std::filesystem::path&)>& open);

}  // namespace decent
