#pragma once
// When something that recurs is due: every so many updates, every so many epochs, and at the end.

#include <cstdint>
#include <optional>

#include "decent/config/recipe.h"
#include "decent/train/plan.h"

namespace decent {

struct Cadence {
  std::optional<std::int64_t> every_steps = {};
  std::optional<std::int64_t> every_epochs = {};
  bool at_end = false;  // after the last update even where the others are not given

  /// When a recipe evaluates and saves. eval.at_start alone also asks for an evaluation at the end.
  static Cadence of(const EvalRecipe& recipe) {
    return {.every_steps = recipe.every_steps,
            .every_epochs = recipe.every_epochs,
            .at_end = recipe.at_start};
  }
  static Cadence of(const CheckpointRecipe& recipe) {
    return {.every_steps = recipe.every_steps, .every_epochs = recipe.every_epochs};
  }

  /// Whether it ever is due.
  bool is_on() const { return every_steps || every_epochs || at_end; }

  /// Whether it is due after update `step` of `plan`: after the last one always, where it is on.
  bool is_due(std::int64_t step, const Plan& plan) const;

  /// Whether it is due there however long the training is.
  bool recurs(std::int64_t step, const Plan& plan) const;
};

}  // namespace decent
