#pragma once
// Checks what an exported program guarantees beyond its schema.

#include <string>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The most nodes of a program, including nodes of its inner graphs.
inline constexpr std::size_t kMaxNodes = 100'000;

/// Throws UserError, which begins with `what`, if a value is used before it is made or made twice,
/// if the signature does not fit the graph, or if a tensor is missing or differs from the graph's
/// description.
void check(const ExportedProgram& program, const std::string& what);

}  // namespace decent::pt2
