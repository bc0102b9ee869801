#pragma once
// recipe.yaml as a page shows it, of this version or an older one: its keys are read as they stand.

#include <optional>
#include <string>
#include <vector>

#include "decent/config/document.h"
#include "decent/topology/topology.h"

namespace decent {

struct RecipeRow {
  std::string key;            // dotted
  std::string value;          // on one line
  std::string fallback = {};  // the default; "" where there is none, or none is known
  bool differs = false;       // from the default
};

class RunRecipe {
 public:
  RunRecipe() = default;
  /// Throws UserError where the text is no YAML mapping.
  explicit RunRecipe(const std::string& text);

  std::vector<RecipeRow> rows() const;

  /// The scalar at a dotted key; "" where there is none.
  std::string text(const std::string& key) const;
  /// Nothing where there is no such number.
  std::optional<double> number(const std::string& key) const;

  /// The topology's name, or "phases".
  std::string topology() const;
  /// The phases of its topology for so many workers. Throws UserError.
  std::vector<Phase> phases(int workers) const;

 private:
  const config::Value* find(const std::string& key) const;

  config::Value root_;
};

}  // namespace decent
