#include "decent/train/run_recipe.h"

#include <utility>

#include "decent/checkpoint/manifest.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/statistics.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

// A resolved recipe names no variables.
std::optional<std::string> no_variables(const std::string&) { return std::nullopt; }

// Errors give nothing: code that needs more of the run than its recipe will report them.
template <class Read>
std::optional<Recipe> recipe_by(const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<Recipe> recipe_of_run(const fs::path& output) {
  return recipe_by(
      [&] { return load_recipe(RunFolder(output).recipe(), {}, recipe_names(), no_variables); });
}

std::optional<Recipe> recipe_of_checkpoint(const fs::path& checkpoint) {
  return recipe_by([&] {
    const fs::path file = checkpoint / kManifestName;
    const Manifest manifest = parse_manifest(read_text(file), file.string());
    return parse_recipe(manifest.recipe, file, {}, recipe_names(), no_variables);
  });
}

Recipe with_kept_statistics(Recipe recipe, const std::optional<fs::path>& checkpoint) {
  if (!needs_statistics(recipe)) return recipe;
  const auto run = checkpoint ? recipe_of_checkpoint(*checkpoint) : recipe_of_run(recipe.output);
  return run ? with_statistics_of(run->data.transforms, std::move(recipe)) : recipe;
}

}  // namespace decent
