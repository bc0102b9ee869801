#pragma once
// What the inputs and outputs of an exported program are, from its JSON.

#include "decent/pt2/json/document.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Throws UserError naming the place where something is not as the schema says.
InputSpec parse_input_spec(Json json);
OutputSpec parse_output_spec(Json json);

}  // namespace decent::pt2
