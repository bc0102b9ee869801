#pragma once
// Compares the shapes that a .pt2 file declares for its inputs with batches of the data.

#include <cstdint>
#include <optional>
#include <string>

#include "decent/model/origin.h"
#include "decent/pt2/program/program.h"

namespace decent {

/// See ModelOrigin::input_mismatch. `name` is the input's name in the program.
std::optional<LayoutMismatch> pt2_input_mismatch(const pt2::ExportedProgram& program,
                                                 const std::string& name, const FedInput& input);

/// How many samples a batch must have, if an input's first dimension is fixed.
std::optional<std::int64_t> pt2_fixed_batch(const pt2::ExportedProgram& program);

/// See ModelOrigin::batch_advice.
std::string pt2_batch_advice(const pt2::ExportedProgram& program, std::int64_t samples);

}  // namespace decent
