#include "decent/config/resolve.h"

#include "decent/config/scalars.h"
#include "decent/config/update_options.h"
#include "decent/optim/update_names.h"

namespace decent::config {
namespace {

// Where `section.key` is given, or the start of the recipe.
Where where_of(const Value& root, const std::string& section, const std::string& key) {
  const Entry* outer = root.find(section);
  if (outer == nullptr) return {};
  const Entry* inner = outer->value.find(key);
  return inner == nullptr ? outer->where : inner->value.where;
}

// What the recipe leaves to the optimizer of its name.
void resolve(OptimizerRecipe& optimizer, const Value& root) {
  const UpdateDefaults defaults = update_defaults(optimizer.name);
  if (!optimizer.weight_decay) optimizer.weight_decay = defaults.weight_decay;
  const Entry* section = root.find("optimizer");
  const auto given = [&](const char* key) {
    return section != nullptr && section->value.find(key) != nullptr;
  };
  if (!given("betas")) optimizer.betas = defaults.betas;
  if (!given("momentum")) optimizer.momentum = defaults.momentum;
}

}  // namespace

void check_together(const Recipe& recipe, const Value& root, Mistakes& mistakes) {
  const OptimizerRecipe& optimizer = recipe.optimizer;
  if (update_takes(optimizer.name, "nesterov") && optimizer.nesterov && optimizer.momentum == 0) {
    mistakes.add(where_of(root, "optimizer", "nesterov"), "optimizer.nesterov",
                 "true needs optimizer.momentum > 0");
  }
  const ParallelRecipe& parallel = recipe.parallel;
  const bool in_backward = parallel.update == UpdateMode::in_backward;
  if (in_backward && needs_whole_gradient(loss_scaler_options(recipe.amp))) {
    mistakes.add(where_of(root, "parallel", "update"), "parallel.update",
                 "in_backward updates weights before it is known whether a gradient overflowed, "
                 "which amp.dtype: fp16 needs; use after_backward, or amp.dtype: bf16");
  }
  if (in_backward && needs_whole_gradient(clip_options(parallel))) {
    mistakes.add(where_of(root, "parallel", "update"), "parallel.update",
                 "in_backward updates weights before the whole gradient is known, which "
                 "grad_clip_norm needs; use after_backward, or grad_clip_scope: bucket");
  }
}

void resolve(Recipe& recipe, const Value& root, const std::filesystem::path& file,
             Mistakes& mistakes) {
  if (recipe.name.empty()) {
    recipe.name = file.stem().empty() ? "recipe" : file.stem().string();
    if (!is_utf8(recipe.name)) {
      mistakes.add({}, "name", "missing, and the file's name is not valid UTF-8");
    }
  }
  if (recipe.output.empty()) recipe.output = std::filesystem::path("runs") / recipe.name;
  if (!recipe.train.epochs && !recipe.train.steps) recipe.train.epochs = 1;
  resolve(recipe.optimizer, root);
}

}  // namespace decent::config
