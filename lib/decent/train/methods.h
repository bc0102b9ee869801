#pragma once
// How the workers of a run train together: the values of parallel.method. A method is a file in
// methods/ and a row in methods.cpp.

#include <string>
#include <string_view>
#include <vector>

#include "decent/comm/launch.h"
#include "decent/config/recipe.h"
#include "decent/topology/topology.h"

namespace decent {

struct ParallelMethod {
  std::string name;
  /// Whether workers average weights while they train, by the topology and exchange of the recipe.
  bool averages_weights = false;
  /// If not: the values of parallel.comm_dtype that it can send; empty where it sends nothing.
  std::vector<std::string> sends = {};
  /// Whether parameters and optimizer states are the same on all workers, bit for bit, so that a
  /// checkpoint needs them once.
  bool copies_alike = false;
  /// Who exchanges with whom in which step. Throws UserError.
  std::vector<Phase> (*phases)(const ParallelRecipe& recipe, const Launch& launch) = nullptr;
};

/// All methods, the default first.
const std::vector<ParallelMethod>& parallel_methods();

/// The method of that name. Throws UserError for an unknown one.
const ParallelMethod& parallel_method(std::string_view name);

}  // namespace decent
