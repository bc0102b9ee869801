#pragma once
// Warns of copies that are too far apart for the codes of a modulo exchange.

#include <cstdint>
#include <optional>
#include <string>

namespace decent {

/// A modulo exchange sends the last bits of a weight's place on a grid, so that a weight that is
/// further away than half of what these bits can count appears to be somewhere else.
class WrapWatch {
 public:
  /// modulo2 with 4 slices has 0.02 to 0.03 and trains well.
  static constexpr double kMaxShare = 0.05;

  /// `share` of the weights measured in `step`. Returns the warning where it is the first above
  /// kMaxShare.
  std::optional<std::string> saw(std::int64_t step, double share);

 private:
  bool warned_ = false;
};

}  // namespace decent
