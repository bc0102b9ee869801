#include "decent/config/table.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "decent/config/foreign_names.h"
#include "decent/core/text.h"

namespace decent::config {
namespace {

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// Keys of the recipe, in quotes, that end with this name, or with the nearest name if none does.
std::vector<std::string> keys_elsewhere(const std::string& name,
                                        const std::vector<std::string>& known_keys) {
  std::vector<std::string> names;
  for (const std::string& known : known_keys) names.push_back(last_part(known));
  const std::optional<std::string> nearest = nearest_name(abbreviate(name, 64), names);
  std::vector<std::string> found;
  for (const std::string& known : known_keys) {
    if (last_part(known) == nearest) found.push_back(quoted_key(known));
  }
  return found;
}

}  // namespace

std::string unknown_key(const std::string& key, const std::vector<std::string>& valid,
                        const std::vector<std::string>& known_keys) {
  for (const std::string& name : valid) {
    if (key.starts_with(name + ":")) return "unknown key; a blank is missing after '" + name + ":'";
  }
  if (const auto advice = foreign_name_advice(key)) return "unknown key; " + *advice;
  const std::string near = suggestion(key, valid);
  if (!near.empty()) return "unknown key" + near;
  const std::vector<std::string> elsewhere = keys_elsewhere(key, known_keys);
  if (!elsewhere.empty()) return "unknown key here; did you mean " + join(elsewhere, " or ") + "?";
  return "unknown key; valid: " + join(valid);
}

std::string advice_on_blank(const Value& value, const std::vector<std::string>& names) {
  const bool is_key = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return value.text.starts_with(name + ":");
  });
  return value.kind == Value::Kind::scalar && is_key ? "; a blank is missing after the colon" : "";
}

void report_duplicates(const Value& mapping, const std::string& path, Context& context) {
  std::set<std::string_view> seen;
  for (const Entry& entry : mapping.entries) {
    if (!seen.insert(entry.key).second) {
      context.mistakes.add(entry.where, dotted(path, entry.key), "duplicate key");
    }
  }
}

std::string dotted(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

}  // namespace decent::config
