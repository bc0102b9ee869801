#include "decent/train/kept_statistics.h"

#include <utility>

#include "decent/checkpoint/manifest.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/report/run_folder.h"
#include "decent/task/statistics.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

// A resolved recipe names no variables.
std::optional<std::string> no_variables(const std::string&) { return std::nullopt; }

Recipe recipe_in(const fs::path& checkpoint) {
  const fs::path file = checkpoint / kManifestName;
  const Manifest manifest = parse_manifest(read_text(file), file.string());
  return parse_recipe(manifest.recipe, file, {}, recipe_names(), no_variables);
}

}  // namespace

Recipe with_kept_statistics(Recipe recipe, const std::optional<fs::path>& checkpoint) {
  if (!needs_statistics(recipe)) return recipe;
  try {
    const Recipe run = checkpoint ? recipe_in(*checkpoint)
                                  : load_recipe(RunFolder(recipe.output).recipe(), {},
                                                recipe_names(), no_variables);
    return with_statistics_of(run.data.transforms, std::move(recipe));
  } catch (const Error&) {
    return recipe;  // whoever needs the checkpoint says what is wrong with it
  }
}

}  // namespace decent
