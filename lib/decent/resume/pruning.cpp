#include "decent/resume/pruning.h"

#include <optional>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/checkpoint/retention.h"

namespace decent {
namespace {

// By checkpoint.keep_best.
std::optional<double> score_of(const Manifest& manifest, const CheckpointRecipe& recipe) {
  for (const auto& [name, value] : manifest.metrics) {
    if (name == recipe.keep_best) return value;
  }
  return std::nullopt;
}

}  // namespace

// What cannot be read is neither counted nor removed: somebody may still want to look at it.
void prune_checkpoints(const CheckpointFolder& folder, const CheckpointRecipe& recipe,
                       bool higher_is_better) {
  std::vector<Kept> kept;
  folder.visit_manifests([&](std::int64_t step, const Manifest& manifest) {
    kept.push_back({step, score_of(manifest, recipe)});
  });
  for (std::int64_t step : superfluous(kept, recipe.keep, higher_is_better)) {
    folder.remove(step);
  }
}

}  // namespace decent
