#pragma once
// Train and eval mode, as the report has them.

#include <string>
#include <vector>

#include "decent/pt2/report/report.h"

namespace decent::pt2 {

/// In which mode the program was exported, what follows the trainer's mode from now on, what stays
/// as it was, and what an export in eval mode has lost.
std::vector<std::string> mode_lines(const ImportFacts& facts, Detail detail);

}  // namespace decent::pt2
