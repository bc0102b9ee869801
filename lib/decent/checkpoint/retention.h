#pragma once
// Which checkpoints stay.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/checkpoint/facts.h"
#include "decent/checkpoint/manifest.h"

namespace decent {

/// A checkpoint and, if it was evaluated, its value of the metric of checkpoint.keep_best.
struct Kept {
  std::int64_t step = 0;
  std::optional<double> score;
};

/// What is known about a checkpoint's evaluation.
struct Evaluated {
  std::int64_t step = 0;
  Numbers metrics = {};
  Facts measure = {};  // the facts that decide what its metrics mean
};

/// The scores by `metric`. Checkpoints from before a change of the loss or of data.eval get no
/// score, because it could not be compared with that of the newest.
std::vector<Kept> comparable_scores(const std::vector<Evaluated>& checkpoints,
                                    const std::string& metric);

/// The step of the checkpoint with the best score, the highest or the lowest; the later one if two
/// are equal. Nothing if none has a score.
std::optional<std::int64_t> best_checkpoint(const std::vector<Kept>& checkpoints,
                                            bool higher_is_better);

/// The steps to remove, lowest first: all but the `keep` latest and the best.
std::vector<std::int64_t> checkpoints_to_remove(std::vector<Kept> checkpoints, std::int64_t keep,
                                                bool higher_is_better);

}  // namespace decent
