#pragma once
// Finds operators that ran in the forward of a torch.autograd.Function. A program has the
// function's operators but not its backward, and only the stack traces of the nodes tell where they
// come from.

#include <string>
#include <vector>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// "Reverse" for "Reverse.apply(x)", or the line that calls the function by another name; each
/// once, in the order of the program.
std::vector<std::string> find_custom_gradients(const ExportedProgram& program);

}  // namespace decent::pt2
