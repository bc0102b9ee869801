#pragma once
// The example inputs with which a program was exported.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "decent/core/stored_tensor.h"
#include "decent/pt2/archive/read.h"

namespace decent::pt2 {

/// An example input. A tensor is a view of the archive.
using SampleValue =
    std::variant<None, bool, std::int64_t, double, std::string, decent::StoredTensor>;

/// One value for each leaf of the program's in_spec, in its order; nothing if the archive has no
/// example inputs. They are in a pickle, from which tensors, tuples, lists, dictionaries, numbers
/// and texts are read; no code is run. Throws UserError for anything else in it, and if their
/// structure differs from in_spec. `archive` must outlive the result.
std::optional<std::vector<SampleValue>> read_sample_inputs(const Archive& archive,
                                                           const ExportedProgram& program);

}  // namespace decent::pt2
