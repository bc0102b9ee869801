#pragma once
// Warns if copies are too far apart for the codes of a modulo exchange.

#include <cstdint>
#include <optional>
#include <string>

namespace decent {

/// A modulo exchange sends only the last bits of a weight's place on a grid. A neighbour's weight
/// that is more than half of their range away is therefore taken for another value.
class WrapWatch {
 public:
  /// modulo2 with 4 slices has 0.02 to 0.03 and trains well.
  static constexpr double kMaxShare = 0.05;

  /// `share`: the wrap share of `step`. Returns the warning the first time it is above kMaxShare.
  std::optional<std::string> saw(std::int64_t step, double share);

 private:
  bool warned_ = false;
};

}  // namespace decent
