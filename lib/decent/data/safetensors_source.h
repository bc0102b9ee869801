#pragma once
// A safetensors file as a data source.

#include <filesystem>
#include <memory>

#include "decent/data/source.h"

namespace decent {

/// Every tensor of the file is a field (in the order of their names); its first dimension counts
/// the samples, so that a tensor of shape [n, a, b] gives n samples of shape [a, b]. The file is
/// memory-mapped: opening reads its header alone, and it must not change while the source lives.
/// Throws UserError where the file cannot be read, is damaged, has no tensors or no samples, or
/// where a tensor has no dimension or another number of samples than the others; reading throws it
/// where the file was truncated.
std::unique_ptr<Source> open_safetensors_source(const std::filesystem::path& path);

}  // namespace decent
