#include "decent/config/reference.h"

#include "decent/config/schema.h"

namespace decent {
namespace {

using config::KeyInfo;

// "an integer >= 1" as the tables write it: "integer >= 1".
std::string without_article(const std::string& type) {
  for (const std::string article : {"an ", "a ", "one of "}) {
    if (type.starts_with(article)) return type.substr(article.size());
  }
  return type;
}

std::string row(const KeyInfo& key, std::size_t prefix) {
  const std::string fallback = key.fallback.empty() ? "(required)" : "`" + key.fallback + "`";
  return "| `" + key.name.substr(prefix) + "` | " + without_article(key.type) + " | " + fallback +
         " | " + key.meaning + " |\n";
}

std::string head(const std::string& title) {
  return "\n### " + title + "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
}

std::string recipe_sections(const config::Names& names) {
  std::string text = head("At the top");
  std::string section;
  for (const KeyInfo& key : config::recipe_keys(names)) {
    const std::size_t dot = key.name.find('.');
    const std::string its_section = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (its_section != section) {
      section = its_section;
      text += head("`" + section + "`");
    }
    text += row(key, section.empty() ? 0 : section.size() + 1);
  }
  return text;
}

template <class S>
std::vector<KeyInfo> keys_of(const config::Table<S>& table, const config::Names& names) {
  std::vector<KeyInfo> keys;
  table.describe("", names, keys);
  return keys;
}

template <class S>
std::string nested(const std::string& title, const config::Table<S>& table,
                   const config::Names& names) {
  std::string text = head(title);
  for (const KeyInfo& key : keys_of(table, names)) text += row(key, 0);
  return text;
}

std::string sources(const config::Names& names) {
  std::string text = nested("A source (`data.train`, `data.eval`, `data.predict`)",
                            config::source_table({}), names);
  for (const NamedOptions& format : names.formats) {
    text += head("A source of format `" + format.name + "`");
    for (const KeyInfo& key : keys_of(config::source_table(format), names)) {
      if (!config::is_common_source_key(key.name)) text += row(key, 0);
    }
  }
  return text;
}

std::string transforms(const config::Names& names) {
  std::string text;
  for (const NamedOptions& transform : names.transforms) {
    if (!transform.keys.empty()) text += head("The transform `" + transform.name + "`");
    for (const KeyInfo& key : keys_of(config::transform_table(transform), names))
      text += row(key, 0);
  }
  return text;
}

}  // namespace

std::string recipe_reference(const config::Names& names) {
  return recipe_sections(names) + sources(names) + transforms(names) +
         nested("The mapping of `model.lora`", config::table_of<LoraRecipe>(), names) +
         nested("The mapping of `data.batch_size`", config::batch_size_table(), names) +
         nested("The mapping of `data.sampling`", config::table_of<SamplingRecipe>(), names) +
         nested("The mapping of `train.stop`", config::table_of<StopRecipe>(), names) +
         nested("An element of `optimizer.param_groups`", config::table_of<ParamGroupRecipe>(),
                names) +
         nested("An element of `schedule.chain`", config::link_table({}), names) +
         nested("An edge of a custom `parallel.topology`", config::table_of<EdgeRecipe>(), names);
}

}  // namespace decent
