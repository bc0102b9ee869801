#pragma once
// Tensors that share memory. Equal views of one record are tied weights and become one tensor;
// views that share only some elements, or have them in another order, become separate tensors.

#include <set>
#include <string>

#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// Throws UserError, which begins with `about`, if a tensor that training changes shares elements
/// with another view, because Python would change both. `written` has the names of buffers and
/// parameters that forward writes.
void refuse_shared_memory(const ExportedProgram& program, const std::set<std::string>& written,
                          const std::string& about);

}  // namespace decent::pt2
