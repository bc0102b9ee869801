#pragma once
// Facts about the recipe's keys besides their values: for the reference, for workers that compare
// their recipes, and for runs that resume.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/config/names.h"

namespace decent::config {

/// What happens if a run resumes with another value of the key.
enum class OnResume {
  same,    // the run is refused
  tell,    // the user is told
  silent,  // nothing: the key does not shape training, or another fact that shows the change
           // better is compared
};

struct KeyInfo {
  std::string name = {};      // dotted; "section.*" for keys of rows that are not among the names
  std::string type = {};      // "an integer >= 1"
  std::string fallback = {};  // the default, or empty: required
  std::string meaning = {};
  bool may_differ = false;  // between the workers of one run
  OnResume on_resume = OnResume::tell;
  /// Whether it decides what an exchange that needs near copies sends, so that a resumed run with
  /// another value begins with the average of all workers. (The learning rates do, too.)
  bool shapes_exchange = false;
  /// Whether it decides what the metrics of an evaluation mean, so that values before and after a
  /// change are not compared.
  bool changes_measure = false;
  /// Whether only methods that average weights use it, so that a change means nothing to others.
  bool of_averaging = false;
  bool operator==(const KeyInfo&) const = default;
};

/// Every key of the recipe, in order, but not the keys inside sources, groups and custom
/// topologies. Types list the names in `names`.
std::vector<KeyInfo> recipe_keys(const Names& names = {});

/// The key with this dotted name; nothing if there is none. `keys`: from recipe_keys(). A key of a
/// row that was not among the names has no type, default and meaning.
std::optional<KeyInfo> find_key(std::string_view name, const std::vector<KeyInfo>& keys);
/// The same among recipe_keys().
std::optional<KeyInfo> find_key(std::string_view name);

}  // namespace decent::config
