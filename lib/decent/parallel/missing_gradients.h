#pragma once
// Parameters that a step did not use.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decent/parallel/replica.h"

namespace decent {

/// What to warn of where step `step` gave these parameters no gradient.
std::string no_gradient_warning(std::int64_t step, const std::vector<std::string>& parameters);

/// Collects them over a step, and warns of each once in a run.
class MissingGradients {
 public:
  /// Looks at the parameters of a bucket, before their gradients go.
  void look_at(const Replica& replica, std::size_t bucket);

  /// Once step `step` is done: the warning of those that are new, if any.
  std::optional<std::string> take_warning(const Replica& replica, std::int64_t step);

 private:
  std::set<std::size_t> seen_;  // in this step; in the order in which they are registered
  std::set<std::size_t> warned_;
};

}  // namespace decent
