#pragma once
// The part of the report about the program's inputs.

#include <string>
#include <vector>

#include "decent/pt2/report/report.h"

namespace decent::pt2 {

/// "input 'x': float32[s77, 3, 32, 32], exported with [2, 3, 32, 32]" for each, with advice if the
/// batch is fixed.
std::vector<std::string> input_lines(const ImportFacts& facts);

}  // namespace decent::pt2
