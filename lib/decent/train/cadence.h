#pragma once
// When a recurring action is due: every N updates, every N epochs, and at the end.

#include <cstdint>
#include <optional>

#include "decent/config/recipe.h"
#include "decent/train/plan.h"

namespace decent {

struct Cadence {
  std::optional<std::int64_t> every_steps = {};
  std::optional<std::int64_t> every_epochs = {};
  bool at_end = false;  // after the last update, even if the others are not given

  /// When a recipe evaluates or saves. eval.at_start alone also asks for an evaluation at the end.
  static Cadence of(const EvalRecipe& recipe) {
    return {.every_steps = recipe.every_steps,
            .every_epochs = recipe.every_epochs,
            .at_end = recipe.at_start};
  }
  static Cadence of(const CheckpointRecipe& recipe) {
    return {.every_steps = recipe.every_steps, .every_epochs = recipe.every_epochs};
  }

  /// Whether it is ever due.
  bool is_on() const { return every_steps || every_epochs || at_end; }

  /// Whether it is due after update `step` of `plan`; if it is on, always after the last update.
  bool is_due(std::int64_t step, const Plan& plan) const;

  /// Whether it is due after `step` however long the training is.
  bool recurs(std::int64_t step, const Plan& plan) const;
};

}  // namespace decent
