#pragma once
// A .npz file as a data source.

#include <filesystem>
#include <memory>

#include "decent/data/source.h"

namespace decent {

/// Every array of the file is a field (in the order of their names); its first dimension counts the
/// samples. Opening reads the file once, to verify its checksums. After that, arrays that
/// numpy.savez stored are read in place from the file, which is memory-mapped and must not change
/// while the source exists. Arrays that are deflated or in Fortran order are kept in memory. Throws
/// UserError as read_npz and open_safetensors_source do. read() throws it if the file was
/// truncated.
std::unique_ptr<Source> open_npz_source(const std::filesystem::path& path);

}  // namespace decent
