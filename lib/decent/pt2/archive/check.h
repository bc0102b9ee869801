#pragma once
// What an exported program promises beyond its schema.

#include <string>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Most nodes of a program, those of its inner graphs included.
inline constexpr std::size_t kMaxNodes = 100'000;

/// Throws UserError, which begins with `what`, where a value is used before it is made or made
/// twice, where the signature does not fit the graph, and where a tensor is missing or is not as
/// the graph says.
void check(const ExportedProgram& program, const std::string& what);

}  // namespace decent::pt2
