#pragma once
// Arrays in memory as a data source; what safetensors and npz files become.

#include <memory>
#include <string>
#include <vector>

#include "decent/core/safetensors.h"
#include "decent/data/source.h"

namespace decent {

/// Every array is a field, its first dimension counts the samples. `owner` keeps what the arrays
/// point to. Throws UserError naming `file` where there are no arrays or no samples, or where an
/// array has no dimension or another number of samples than the others.
std::unique_ptr<Source> make_table_source(std::vector<TensorView> arrays,
                                          std::shared_ptr<const void> owner,
                                          const std::string& file);

}  // namespace decent
