#pragma once
// Reads TreeSpecs from the JSON of torch.utils._pytree.treespec_dumps.

#include <string>
#include <string_view>
#include <vector>

#include "decent/pt2/program/program.h"
#include "decent/pt2/program/tree_spec.h"

namespace decent::pt2 {

/// The names of the fields of named tuples, by type name.
using NamedTuples = ByName<std::vector<std::string>>;

/// Throws UserError, which begins with `what`.
TreeSpec parse_tree_spec(std::string_view text, const NamedTuples& named_tuples,
                         const std::string& what);

}  // namespace decent::pt2
