#include "decent/config/reference.h"

#include "decent/config/schema.h"

namespace decent {
namespace {

using config::KeyInfo;

// "an integer >= 1" as a table says it: "integer >= 1".
std::string without_article(const std::string& type) {
  for (const std::string article : {"an ", "a ", "one of "}) {
    if (type.starts_with(article)) return type.substr(article.size());
  }
  return type;
}

std::string row(const KeyInfo& key, std::size_t prefix) {
  const std::string fallback = key.fallback.empty() ? "(required)" : "`" + key.fallback + "`";
  const std::string support = key.support.empty() ? "" : " *(" + key.support + ")*";
  return "| `" + key.name.substr(prefix) + "` | " + without_article(key.type) + " | " + fallback +
         " | " + key.meaning + support + " |\n";
}

std::string head(const std::string& title) {
  return "\n### " + title + "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
}

std::string recipe_sections() {
  std::string text = head("At the top");
  std::string section;
  for (const KeyInfo& key : config::recipe_keys()) {
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
std::string nested(const std::string& title, const config::Table<S>& table) {
  std::vector<KeyInfo> keys;
  table.describe("", keys);
  std::string text = head(title);
  for (const KeyInfo& key : keys) text += row(key, 0);
  return text;
}

bool is_common(const KeyInfo& key) {
  return key.name == "format" || key.name == "limit" || key.name == "holdout";
}

std::vector<KeyInfo> source_keys(SourceFormat format) {
  std::vector<KeyInfo> keys;
  config::source_table(format).describe("", keys);
  return keys;
}

std::string sources() {
  std::string text = head("A source (`data.train`, `data.eval`)");
  for (const KeyInfo& key : source_keys(SourceFormat::builtin)) {
    if (is_common(key)) text += row(key, 0);
  }
  for (const auto& choice : choices(SourceFormat{})) {
    text += head("A source of format `" + std::string(choice.name) + "`");
    for (const KeyInfo& key : source_keys(choice.value)) {
      if (!is_common(key)) text += row(key, 0);
    }
  }
  return text;
}

}  // namespace

std::string recipe_reference() {
  return recipe_sections() + sources() +
         nested("`holdout` of a source", config::table_of<HoldoutRecipe>()) +
         nested("An element of `optimizer.param_groups`", config::table_of<ParamGroupRecipe>()) +
         nested("An edge of a custom `parallel.topology`", config::table_of<EdgeRecipe>());
}

}  // namespace decent
