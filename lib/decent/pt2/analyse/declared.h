#pragma once
// Shapes as an export declares them.

#include <string>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// "[s77, 3]", with the export's symbols for free dimensions.
std::string declared_text(const TensorMeta& meta);

}  // namespace decent::pt2
