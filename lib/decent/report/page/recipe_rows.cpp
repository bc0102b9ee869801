#include "decent/report/page/recipe_rows.h"

#include <algorithm>
#include <array>
#include <map>

#include "decent/config/keys.h"
#include "decent/config/loader.h"
#include "decent/config/scalars.h"
#include "decent/core/error.h"

namespace decent {
namespace {

using config::Entry;
using config::Value;

constexpr std::array<std::string_view, 10> kSections = {
    "model",    "data", "train", "optimizer", "schedule",
    "parallel", "amp",  "eval",  "log",       "checkpoint"};

std::string joined(const std::string& all, const std::string& next) {
  return all.empty() ? next : all + ", " + next;
}

std::string one_line(const Value& value);

std::string inside(const Value& value) {
  std::string all;
  for (const Value& item : value.items) all = joined(all, one_line(item));
  for (const Entry& entry : value.entries)
    all = joined(all, config::key_text(entry.key) + ": " + one_line(entry.value));
  return all;
}

// A value as a recipe would write it on one line.
std::string one_line(const Value& value) {
  switch (value.kind) {
    case Value::Kind::list:
      return "[" + inside(value) + "]";
    case Value::Kind::mapping:
      return "{" + inside(value) + "}";
    case Value::Kind::scalar:
      return value.quoted ? config::scalar_text(value.text) : value.text;
    default:
      return "null";
  }
}

// 1e-8 and 1e-08 are the same number.
bool same(const Value& a, const Value& b) {
  const auto first = config::to_number(a), second = config::to_number(b);
  if (first && second) return *first == *second;
  if (a.kind != b.kind || a.text != b.text) return false;
  const auto same_entry = [](const Entry& x, const Entry& y) {
    return x.key == y.key && same(x.value, y.value);
  };
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    same_entry);
}

using Defaults = std::map<std::string, std::string>;

// Nothing if the text, which a damaged run.json may hold, is no YAML.
std::optional<Value> parsed(const std::string& text) {
  try {
    return text.empty() ? Value{} : config::parse_document(text, 0);
  } catch (const config::SyntaxMistake&) {
    return std::nullopt;
  }
}

void add_row(const std::string& key, const Value& value, const Defaults& defaults,
             std::vector<RecipeRow>& rows) {
  RecipeRow row{.key = key, .value = one_line(value)};
  const auto known = defaults.find(key);
  const auto fallback = known == defaults.end() ? std::nullopt : parsed(known->second);
  if (!fallback) {
    // A run without run.json does not say the defaults of losses and exchanges.
    row.differs = key != "name" && key != "output" && !config::find_key(key);
  } else if (known->second.empty()) {
    row.differs = true;  // a key without a default was always set by the user
  } else {
    row.fallback = known->second;
    row.differs = !same(value, *fallback);
  }
  rows.push_back(std::move(row));
}

// -1 if the value cannot be a rank.
int rank_in(const Value& value) {
  const std::int64_t rank = config::to_integer(value).value_or(-1);
  return rank == static_cast<int>(rank) ? static_cast<int>(rank) : -1;
}

Edge edge_in(const Value& value) {
  Edge edge;
  if (const Entry* ranks = value.find("ranks")) {
    for (const Value& rank : ranks->value.items) edge.ranks.push_back(rank_in(rank));
  }
  if (const Entry* weight = value.find("weight"))
    edge.self_weight = config::to_number(weight->value).value_or(kEqualShares);
  return edge;
}

std::vector<Phase> phases_in(const Value& list) {
  std::vector<Phase> phases;
  for (const Value& each : list.items) {
    Phase& phase = phases.emplace_back();
    for (const Value& edge : each.items) phase.push_back(edge_in(edge));
  }
  return phases;
}

}  // namespace

RunRecipe::RunRecipe(const std::string& text) {
  try {
    root_ = config::parse_document(text, 0);
  } catch (const config::SyntaxMistake& mistake) {
    throw UserError("line " + std::to_string(mistake.where.line) + ": " + mistake.what());
  }
  if (root_.kind != Value::Kind::mapping) throw UserError("it is no mapping of keys");
}

std::vector<RecipeRow> RunRecipe::rows(
    const std::vector<std::pair<std::string, std::string>>& given) const {
  Recipe recipe;
  recipe.optimizer.name = text("optimizer.name");
  const auto known = given.empty() ? recipe_defaults(recipe) : given;
  const Defaults defaults(known.begin(), known.end());
  std::vector<RecipeRow> rows;
  for (const Entry& entry : root_.entries) {
    const bool section =
        entry.value.kind == Value::Kind::mapping &&
        std::find(kSections.begin(), kSections.end(), entry.key) != kSections.end();
    if (!section) add_row(entry.key, entry.value, defaults, rows);
    for (const Entry& inner : section ? entry.value.entries : std::vector<Entry>{})
      add_row(entry.key + "." + inner.key, inner.value, defaults, rows);
  }
  return rows;
}

const Value* RunRecipe::find(const std::string& key) const {
  const std::size_t dot = key.find('.');
  const Entry* outer = root_.find(key.substr(0, dot));
  if (outer == nullptr || dot == std::string::npos) return outer ? &outer->value : nullptr;
  const Entry* inner = outer->value.find(key.substr(dot + 1));
  return inner ? &inner->value : nullptr;
}

std::string RunRecipe::text(const std::string& key) const {
  const Value* value = find(key);
  return value && value->kind == Value::Kind::scalar ? value->text : "";
}

std::optional<double> RunRecipe::number(const std::string& key) const {
  const Value* value = find(key);
  return value ? config::to_number(*value) : std::nullopt;
}

std::string RunRecipe::topology() const {
  const Value* value = find("parallel.topology");
  if (value == nullptr) return ParallelRecipe().topology.name;
  return value->kind == Value::Kind::mapping ? "phases" : text("parallel.topology");
}

std::vector<Phase> RunRecipe::phases(int workers) const {
  const Value* value = find("parallel.topology");
  const Entry* own = value ? value->find("phases") : nullptr;
  if (own) return Topology(phases_in(own->value)).phases(workers, workers);
  const double local = number("parallel.local_world_size").value_or(0);
  if (topology() == "alternating-exp-ring" && local < 1)
    throw UserError("the recipe does not tell how many workers a machine had");
  const int per_machine = local >= 1 && local <= workers ? static_cast<int>(local) : workers;
  return make_topology(topology(), workers, per_machine);
}

}  // namespace decent
