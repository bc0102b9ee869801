#include "decent/resume/pruning.h"

#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/checkpoint/retention.h"
#include "decent/resume/compatibility.h"

namespace decent {

// Unreadable checkpoints are neither counted nor removed: somebody may still want to look at them.
void prune_checkpoints(const CheckpointFolder& folder, const CheckpointRecipe& recipe,
                       bool higher_is_better) {
  std::vector<Evaluated> evaluated;
  folder.visit_manifests([&](std::int64_t step, const Manifest& manifest) {
    evaluated.push_back({step, manifest.metrics, measure_of(manifest.facts)});
  });
  const std::vector<Kept> kept = comparable_scores(evaluated, recipe.keep_best.value_or(""));
  for (std::int64_t step : checkpoints_to_remove(kept, recipe.keep, higher_is_better)) {
    folder.remove(step);
  }
}

}  // namespace decent
