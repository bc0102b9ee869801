#pragma once
// What a .pt2 file says of the shapes of its inputs, against batches of the data.

#include <cstdint>
#include <optional>
#include <string>

#include "decent/model/origin.h"
#include "decent/pt2/program/program.h"

namespace decent {

/// See ModelOrigin::input_mismatch. `name`: of the input in the program.
std::optional<LayoutMismatch> pt2_input_mismatch(const pt2::ExportedProgram& program,
                                                 const std::string& name, const FedInput& input);

/// How many samples a batch must have, where an input's first dimension is fixed.
std::optional<std::int64_t> pt2_fixed_batch(const pt2::ExportedProgram& program);

/// See ModelOrigin::batch_advice.
std::string pt2_batch_advice(const pt2::ExportedProgram& program, std::int64_t samples);

}  // namespace decent
