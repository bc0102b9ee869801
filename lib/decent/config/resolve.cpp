#include "decent/config/resolve.h"

#include "decent/config/scalars.h"

namespace decent::config {
namespace {

// Where `section.key` is given, or the start of the recipe.
Where where_of(const Value& root, const std::string& section, const std::string& key) {
  const Entry* outer = root.find(section);
  if (outer == nullptr) return {};
  const Entry* inner = outer->value.find(key);
  return inner == nullptr ? outer->where : inner->value.where;
}

double default_weight_decay(OptimizerName name) {
  const bool decoupled = name == OptimizerName::adamw || name == OptimizerName::accum_adamw;
  return decoupled ? 0.1 : 0.0;
}

}  // namespace

void check_together(const Recipe& recipe, const Value& root, Mistakes& mistakes) {
  const OptimizerRecipe& optimizer = recipe.optimizer;
  if (optimizer.name == OptimizerName::sgd && optimizer.nesterov && optimizer.momentum == 0) {
    mistakes.add(where_of(root, "optimizer", "nesterov"), "optimizer.nesterov",
                 "true needs optimizer.momentum > 0");
  }
  const ParallelRecipe& parallel = recipe.parallel;
  if (parallel.update == UpdateMode::in_backward && recipe.amp.dtype == AmpDType::fp16) {
    mistakes.add(where_of(root, "parallel", "update"), "parallel.update",
                 "in_backward updates weights before it is known whether a gradient overflowed, "
                 "which amp.dtype: fp16 needs; use after_backward, or amp.dtype: bf16");
  }
  if (parallel.update == UpdateMode::in_backward && parallel.grad_clip_norm > 0 &&
      parallel.grad_clip_scope == ClipScope::global) {
    mistakes.add(where_of(root, "parallel", "update"), "parallel.update",
                 "in_backward updates weights before the whole gradient is known, which "
                 "grad_clip_norm needs; use after_backward, or grad_clip_scope: bucket");
  }
}

void resolve(Recipe& recipe, const std::filesystem::path& file, Mistakes& mistakes) {
  if (recipe.name.empty()) {
    recipe.name = file.stem().empty() ? "recipe" : file.stem().string();
    if (!is_utf8(recipe.name)) {
      mistakes.add({}, "name", "missing, and the file's name is not valid UTF-8");
    }
  }
  if (recipe.output.empty()) recipe.output = std::filesystem::path("runs") / recipe.name;
  if (!recipe.train.epochs && !recipe.train.steps) recipe.train.epochs = 1;
  if (!recipe.optimizer.weight_decay) {
    recipe.optimizer.weight_decay = default_weight_decay(recipe.optimizer.name);
  }
}

}  // namespace decent::config
