#pragma once
// Which checkpoints are kept, and which are removed.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace decent {

/// A checkpoint with its score by the metric that chooses the best; nullopt if it was not
/// evaluated.
struct Kept {
  std::int64_t step = 0;
  std::optional<double> score;
};

/// Whether a higher value of a metric is better: true for accuracy, top5 and r2, false for losses
/// and errors.
bool higher_is_better(std::string_view metric);

/// The steps of the checkpoints to remove, lowest first: all except the `keep` latest ones and the
/// best of those with a score (the latest of equals).
std::vector<std::int64_t> superfluous(std::vector<Kept> checkpoints, std::int64_t keep,
                                      bool higher_is_better);

}  // namespace decent
