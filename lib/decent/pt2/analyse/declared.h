#pragma once
// Shapes as an export declares them.

#include <string>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// "[s77, 3]": free dimensions by the symbols of the export.
std::string declared_text(const TensorMeta& meta);

}  // namespace decent::pt2
