#pragma once
// The recipe's globs over parameter names: model.freeze and optimizer.param_groups.

#include <span>
#include <string>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/training_options.h"

namespace decent {

/// Parameters whose names match one of `globs` no longer require a gradient. Throws UserError if a
/// glob matches no parameter (naming similar names), or if nothing is left to train.
void freeze_parameters(const NamedTensors& parameters, std::span<const std::string> globs);

/// Whether one of the globs matches the name.
bool matches_any(std::span<const std::string> globs, const std::string& name);

/// Throws UserError naming `key`, with similar names, if a glob matches none of `names`.
void check_matches(const std::string& key, const std::string& glob,
                   const std::vector<std::string>& names);

/// Throws UserError if a group matches no parameter that trains.
void check_param_groups(const NamedTensors& parameters, std::span<const ParamGroupRecipe> groups);

/// Weight decay, learning rate and optimizer of one parameter: the first group that matches
/// decides. If it sets no value, or none matches, the optimizer's own value counts. Without any
/// groups, tensors of fewer than 2 dimensions do not decay.
ParameterSettings settings_of(const OptimizerRecipe& recipe, const std::string& name,
                              const at::Tensor& parameter);

}  // namespace decent
