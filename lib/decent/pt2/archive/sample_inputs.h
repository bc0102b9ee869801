#pragma once
// The example inputs that a program was exported with.

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

/// One value for each leaf of the program's in_spec, in its order; nothing where the archive holds
/// none. They are a pickle, of which tensors, tuples, lists, dictionaries, numbers and texts are
/// read, and no code is run. Throws UserError where there is anything else among them, and where
/// they are not laid out as in_spec says. `archive` outlives the result.
std::optional<std::vector<SampleValue>> read_sample_inputs(const Archive& archive,
                                                           const ExportedProgram& program);

}  // namespace decent::pt2
