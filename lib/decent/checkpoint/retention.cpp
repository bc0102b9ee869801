#include "decent/checkpoint/retention.h"

#include <algorithm>

namespace decent {

std::vector<std::int64_t> superfluous(std::vector<Kept> checkpoints, std::int64_t keep,
                                      bool higher_is_better) {
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const Kept& a, const Kept& b) { return a.step < b.step; });
  const Kept* best = nullptr;
  for (const Kept& checkpoint : checkpoints) {
    if (!checkpoint.score) continue;
    const bool better = best == nullptr || (higher_is_better ? *checkpoint.score >= *best->score
                                                             : *checkpoint.score <= *best->score);
    if (better) best = &checkpoint;
  }
  const auto count = static_cast<std::int64_t>(checkpoints.size());
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < count - keep; ++i) {
    const Kept& checkpoint = checkpoints[static_cast<std::size_t>(i)];
    if (&checkpoint != best) steps.push_back(checkpoint.step);
  }
  return steps;
}

}  // namespace decent
