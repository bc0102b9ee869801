#pragma once
// Parameters that a step did not use.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decent/parallel/replica.h"
#include "decent/topology/topology.h"

namespace decent {

/// The warning that step `step` gave these parameters no gradient. `consequence` ends the sentence;
/// see without_gradient().
std::string no_gradient_warning(std::int64_t step, const std::vector<std::string>& parameters,
                                const std::string& consequence);

/// What happens to a parameter without a gradient if workers average weights in `phases`, for
/// no_gradient_warning().
std::string without_gradient(const std::vector<Phase>& phases);

/// Collects such parameters over a step, and warns of each once in a run.
class MissingGradients {
 public:
  explicit MissingGradients(std::string consequence) : consequence_(std::move(consequence)) {}

  /// In this step, parameter number `parameter` got no gradient.
  void note(std::size_t parameter) { seen_.insert(parameter); }

  /// After step `step`: the warning about parameters that are new, if any.
  std::optional<std::string> take_warning(const Replica& replica, std::int64_t step);

 private:
  std::string consequence_;
  std::set<std::size_t> seen_;  // in this step, in order of registration
  std::set<std::size_t> warned_;
};

}  // namespace decent
