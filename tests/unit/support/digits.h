#pragma once
// The recipe of a small run on the digits, which needs only the model's file.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "decent/config/recipe.h"

namespace decent::testing {

inline SourceRecipe digits_source(const std::string& split) {
  return {.format = "builtin",
          .options = {{"name", std::string("digits")}, {"split", split}},
          .limit = {},
          .holdout = {}};
}

/// `model`: a file of models/. Runs on the CPU.
inline Recipe digits_recipe(const char* model) {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  if (root == nullptr) throw std::runtime_error("set DECENT_SOURCE_DIR to the repository's root");
  Recipe recipe;
  recipe.model.path = std::filesystem::path(root) / "models" / model;
  recipe.model.device = DeviceName::cpu;
  recipe.data.train = digits_source("train");
  recipe.data.eval = digits_source("test");
  recipe.train.epochs = 2;
  recipe.optimizer.weight_decay = 0;
  return recipe;
}

}  // namespace decent::testing
