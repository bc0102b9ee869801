#pragma once
// A safetensors file as a data source.

#include <filesystem>
#include <memory>

#include "decent/data/source.h"

namespace decent {

/// Every tensor of the file is a field (in the order of their names); its first dimension counts
/// the samples, so that a tensor of shape [n, a, b] gives n samples of shape [a, b]. The file is
/// memory-mapped: opening reads only its header, and the file must not change while the source
/// exists. Throws UserError if the file cannot be read, is damaged, has no tensors or no samples,
/// or if a tensor has no dimension or another number of samples than the others. read() throws it
/// if the file was truncated.
std::unique_ptr<Source> open_safetensors_source(const std::filesystem::path& path);

}  // namespace decent
