#pragma once
// Inputs of the program, as the report has them.

#include <string>
#include <vector>

#include "decent/pt2/report/report.h"

namespace decent::pt2 {

/// "input 'x': float32[s77, 3, 32, 32], exported with [2, 3, 32, 32]" for each, and what to do
/// where the batch is fixed.
std::vector<std::string> input_lines(const ImportFacts& facts);

}  // namespace decent::pt2
