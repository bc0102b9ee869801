#pragma once
// Reads the signature of an exported program, its inputs and outputs, from its JSON.

#include "decent/pt2/json/document.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Throws UserError naming the place if something does not follow the schema.
InputSpec parse_input_spec(Json json);
OutputSpec parse_output_spec(Json json);

}  // namespace decent::pt2
