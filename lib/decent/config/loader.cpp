#include "decent/config/loader.h"

#include "decent/config/environment.h"
#include "decent/config/extends.h"
#include "decent/config/option_keys.h"
#include "decent/config/overrides.h"
#include "decent/config/resolve.h"
#include "decent/config/schema.h"
#include "decent/core/file.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/optim/update_names.h"

namespace decent {
namespace {

using config::Value;

// The document of a recipe with those that it extends. What is wrong with one is reported at once,
// as nothing in it can be checked further.
Value read_document(const std::string& text, const std::filesystem::path& file,
                    const config::Names& names, const Variables& environment,
                    config::Mistakes& mistakes) {
  Value root = config::parse_mapping(text, 0, mistakes);
  if (root.kind == Value::Kind::mapping) config::extend(root, file, names, environment, mistakes);
  mistakes.throw_if_any();
  return root;
}

}  // namespace

Recipe load_recipe(const std::filesystem::path& file, std::span<const std::string> overrides,
                   const config::Names& names, const Variables& environment) {
  return parse_recipe(read_text(file), file, overrides, names, environment);
}

Recipe parse_recipe(const std::string& text, const std::filesystem::path& file,
                    std::span<const std::string> overrides, const config::Names& names,
                    const Variables& environment) {
  config::Mistakes mistakes(file, overrides);
  Value root = read_document(text, file, names, environment, mistakes);
  config::apply_overrides(root, overrides, mistakes);
  config::expand_environment(root, environment, mistakes);

  config::inherit_source_keys(root, names);

  Recipe recipe;
  config::Context context{mistakes, names, names_in(config::recipe_keys(names))};
  config::recipe_table().read(root, {}, "", context, recipe);
  config::resolve(recipe, root, file, names, mistakes);
  config::check_together(recipe, root, names, mistakes);
  mistakes.throw_if_any();
  return recipe;
}

std::vector<std::filesystem::path> recipe_files(const std::filesystem::path& file,
                                                const Variables& environment) {
  config::Mistakes mistakes(file, {});
  read_document(read_text(file), file, {}, environment, mistakes);
  return mistakes.files();
}

std::string print_recipe(const Recipe& recipe) {
  return config::recipe_table().print_lines(recipe);
}

std::vector<std::pair<std::string, std::string>> recipe_values(const Recipe& recipe) {
  std::vector<std::pair<std::string, std::string>> values;
  config::recipe_table().values(recipe, "", values);
  return values;
}

std::vector<std::pair<std::string, std::string>> recipe_defaults(const Recipe& recipe,
                                                                 const config::Names& names) {
  // A version that does not know the optimizer or the method has only the general defaults.
  const std::string& optimizer = recipe.optimizer.name;
  const config::MethodName* method = find_named(names.methods, recipe.parallel.method);
  const NamedOptions* row = find_named(update_table(), optimizer);
  std::vector<std::pair<std::string, std::string>> defaults;
  for (config::KeyInfo& key : config::recipe_keys(names)) {
    if (key.name == "name" || key.name == "output" || key.name.ends_with("*")) continue;
    const std::size_t dot = key.name.find('.');
    const bool of_optimizer = row != nullptr && key.name.substr(0, dot) == "optimizer";
    const OptionKey* own = of_optimizer ? row->key(key.name.substr(dot + 1)) : nullptr;
    if (own != nullptr) key.fallback = config::print_option(own->fallback.value_or(kNull));
    if (of_optimizer && key.name == "optimizer.weight_decay")
      key.fallback = number_text(default_weight_decay(optimizer));
    if (method != nullptr && key.name == "parallel.bucket_mb")
      key.fallback = number_text(method->bucket_mb);
    defaults.emplace_back(std::move(key.name), std::move(key.fallback));
  }
  return defaults;
}

}  // namespace decent
