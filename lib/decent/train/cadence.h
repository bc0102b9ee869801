#pragma once
// When something that recurs is due: every so many updates, every so many epochs, and at the end.

#include <cstdint>
#include <optional>

#include "decent/train/plan.h"

namespace decent {

struct Cadence {
  std::optional<std::int64_t> every_steps = {};
  std::optional<std::int64_t> every_epochs = {};
  bool at_end = false;  // after the last update even where the others are not given

  /// Whether it ever is due.
  bool is_on() const { return every_steps || every_epochs || at_end; }

  /// Whether it is due after update `step` of `plan`: after the last one always, where it is on.
  bool is_due(std::int64_t step, const Plan& plan) const;

  /// Whether it is due there however long the training is.
  bool recurs(std::int64_t step, const Plan& plan) const;
};

}  // namespace decent
