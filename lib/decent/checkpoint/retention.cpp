#include "decent/checkpoint/retention.h"

#include <algorithm>

namespace decent {

std::vector<Kept> comparable_scores(const std::vector<Evaluated>& checkpoints,
                                    const std::string& metric) {
  const auto newest =
      std::max_element(checkpoints.begin(), checkpoints.end(),
                       [](const Evaluated& a, const Evaluated& b) { return a.step < b.step; });
  std::vector<Kept> scores;
  for (const Evaluated& each : checkpoints) {
    const bool alike = !contradict(each.measure, newest->measure);
    scores.push_back({each.step, alike ? find_number(each.metrics, metric) : std::nullopt});
  }
  return scores;
}

std::optional<std::int64_t> best_checkpoint(const std::vector<Kept>& checkpoints,
                                            bool higher_is_better) {
  const auto better = [&](const Kept& a, const Kept& b) {
    if (*a.score == *b.score) return a.step > b.step;
    return higher_is_better ? *a.score > *b.score : *a.score < *b.score;
  };
  const Kept* best = nullptr;
  for (const Kept& checkpoint : checkpoints) {
    if (checkpoint.score && (best == nullptr || better(checkpoint, *best))) best = &checkpoint;
  }
  return best == nullptr ? std::nullopt : std::optional(best->step);
}

std::vector<std::int64_t> checkpoints_to_remove(std::vector<Kept> checkpoints, std::int64_t keep,
                                                bool higher_is_better) {
  const auto best = best_checkpoint(checkpoints, higher_is_better);
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const Kept& a, const Kept& b) { return a.step < b.step; });
  const auto count = static_cast<std::int64_t>(checkpoints.size());
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < count - keep; ++i) {
    const std::int64_t step = checkpoints[static_cast<std::size_t>(i)].step;
    if (step != best) steps.push_back(step);
  }
  return steps;
}

}  // namespace decent
