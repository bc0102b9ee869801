#include "decent/task/param_groups.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

std::vector<std::string> names_of_all(const NamedTensors& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters) names.push_back(name);
  return names;
}

[[noreturn]] void matches_nothing(const std::string& key, const std::string& glob,
                                  const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 8;
  std::string message = key + ": '" + glob + "' matches no parameter of the model";
  if (const auto nearest = nearest_name(glob, names))
    message += "; did you mean '" + *nearest + "'?";
  throw UserError(message + "\nIt has " + some_of(names, kMaxNames));
}

}  // namespace

bool matches_any(std::span<const std::string> globs, const std::string& name) {
  return std::ranges::any_of(globs,
                             [&](const std::string& glob) { return glob_matches(glob, name); });
}

void check_matches(const std::string& key, const std::string& glob,
                   const std::vector<std::string>& names) {
  const bool found = std::any_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return glob_matches(glob, name); });
  if (!found) matches_nothing(key, glob, names);
}

void freeze_parameters(const NamedTensors& parameters, std::span<const std::string> globs) {
  const std::vector<std::string> names = names_of_all(parameters);
  for (const std::string& glob : globs) check_matches("model.freeze", glob, names);
  for (const auto& [name, tensor] : parameters) {
    if (matches_any(globs, name)) at::Tensor(tensor).requires_grad_(false);
  }
  if (!globs.empty() && trained_part(parameters).empty()) {
    throw UserError("model.freeze: " + join(globs) + " freezes everything (" +
                    counted(std::ssize(names), "parameter") + "): nothing is left to train");
  }
}

void check_param_groups(const NamedTensors& parameters, std::span<const ParamGroupRecipe> groups) {
  const std::vector<std::string> names = names_of_all(trained_part(parameters));
  for (const ParamGroupRecipe& group : groups) {
    check_matches("optimizer.param_groups", group.match, names);
  }
}

ParameterSettings settings_of(const OptimizerRecipe& recipe, const std::string& name,
                              const at::Tensor& parameter) {
  const double decay = recipe.weight_decay.value();
  if (recipe.param_groups.empty()) return {.weight_decay = parameter.dim() >= 2 ? decay : 0.0};
  for (const ParamGroupRecipe& group : recipe.param_groups) {
    if (!glob_matches(group.match, name)) continue;
    return {.weight_decay = group.weight_decay.value_or(decay),
            .lr_scale = group.lr_scale.value_or(1.0),
            .as_matrix = !group.optimizer};
  }
  return {.weight_decay = decay};
}

}  // namespace decent
