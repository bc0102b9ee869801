#include "decent/config/table.h"

#include <set>
#include <string_view>

namespace decent::config {
namespace {

// Dotted keys of the recipe that end with this name.
std::vector<std::string> keys_ending_with(const std::string& name,
                                          const std::vector<std::string>& known_keys) {
  std::vector<std::string> found;
  for (const std::string& known : known_keys) {
    if (known.ends_with("." + name)) found.push_back(known);
  }
  return found;
}

}  // namespace

std::string unknown_key(const std::string& key, const std::vector<std::string>& valid,
                        const std::vector<std::string>& known_keys) {
  const std::string near = suggestion(key, valid);
  if (!near.empty()) return "unknown key" + near;
  const std::vector<std::string> elsewhere = keys_ending_with(key, known_keys);
  if (!elsewhere.empty()) {
    return "unknown key here; did you mean '" + join(elsewhere, "' or '") + "'?";
  }
  return "unknown key; valid: " + join(valid);
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
