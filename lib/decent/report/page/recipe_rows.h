#pragma once
// recipe.yaml as a page shows it. Keys are read without a schema, so that any version's file works.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decent/config/document.h"
#include "decent/topology/topology.h"

namespace decent {

struct RecipeRow {
  std::string key;            // dotted
  std::string value;          // on one line
  std::string fallback = {};  // the default; "" if there is none, or none is known
  bool differs = false;       // from the default
};

class RunRecipe {
 public:
  RunRecipe() = default;
  /// Throws UserError if the text is no YAML mapping.
  explicit RunRecipe(const std::string& text);

  /// `defaults`: of the keys, by the version that the run was made by; empty: by this version.
  std::vector<RecipeRow> rows(
      const std::vector<std::pair<std::string, std::string>>& defaults = {}) const;

  /// The scalar at a dotted key; "" if there is none.
  std::string text(const std::string& key) const;
  /// The number at a dotted key; nothing if there is none.
  std::optional<double> number(const std::string& key) const;

  /// The topology's name, or "phases".
  std::string topology() const;
  /// The phases of the topology for `workers` workers. Throws UserError.
  std::vector<Phase> phases(int workers) const;

 private:
  const config::Value* find(const std::string& key) const;

  config::Value root_;
};

}  // namespace decent
