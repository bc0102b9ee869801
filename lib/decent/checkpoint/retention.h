#pragma once
// Which checkpoints stay.

#include <cstdint>
#include <optional>
#include <vector>

namespace decent {

/// A checkpoint, and its evaluation by the metric of checkpoint.keep_best where there was one.
struct Kept {
  std::int64_t step = 0;
  std::optional<double> score;
};

/// The steps to remove, lowest first: all but the `keep` latest and the best of those with a score,
/// the highest or the lowest, the later of equals.
std::vector<std::int64_t> superfluous(std::vector<Kept> checkpoints, std::int64_t keep,
                                      bool higher_is_better);

}  // namespace decent
