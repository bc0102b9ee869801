// The tables of sources and of what lists of mappings hold.

#include <algorithm>
#include <set>
#include <stdexcept>

#include "decent/config/schema.h"
#include "decent/core/text.h"

namespace decent::config {
namespace {

// All keys of sources; each format takes some.
Table<SourceRecipe> all_source_keys() {
  using R = SourceRecipe;
  Table<R> table;
  table.required("format", &R::format)
      .one_of(format_names)
      .doc("Format of the data; the other keys depend on it.");
  table.required("name", &R::name).doc("Name of the data set, e.g. `digits`.");
  table.required("split", &R::split)
      .one_of([](const Names&) {
        return std::vector<std::string>{"train", "test"};
      })
      .doc("Which part of the data set.");
  table.required("path", &R::paths)
      .doc("The file, a list of files or a glob; array names are the fields.");
  table.later("limit", "null", "Use only that many samples, the first ones.");
  table.later("holdout", "null", "Split the samples, one part trains, the other evaluates.");
  return table;
}

// What is wrong within one phase, or an empty text.
std::string mistake_in_phase(const std::vector<EdgeRecipe>& phase, std::size_t number) {
  const std::string name = "phase " + std::to_string(number);
  if (phase.empty()) return name + " has no edges; expected a list of {ranks, weight}";
  std::set<std::int64_t> seen;
  for (const EdgeRecipe& edge : phase) {
    if (edge.ranks.empty()) return name + " has an edge without ranks";
    for (std::int64_t rank : edge.ranks) {
      if (!seen.insert(rank).second) {
        return name + " has rank " + std::to_string(rank) + " twice; expected it in one edge";
      }
    }
  }
  return "";
}

std::string mistake_in_phases(const std::vector<std::vector<EdgeRecipe>>& phases) {
  if (phases.empty()) return "expected a list of phases, not empty";
  for (std::size_t i = 0; i < phases.size(); ++i) {
    std::string mistake = mistake_in_phase(phases[i], i);
    if (!mistake.empty()) return mistake;
  }
  return "";
}

Table<ParamGroupRecipe> make_param_group_table() {
  Table<ParamGroupRecipe> table;
  table.required("match", &ParamGroupRecipe::match).doc("Glob over parameter names.");
  table.key("weight_decay", &ParamGroupRecipe::weight_decay)
      .range(at_least(0))
      .doc("Weight decay of the group; null: the optimizer's.");
  table.key("lr_scale", &ParamGroupRecipe::lr_scale)
      .range(at_least(0))
      .doc("Factor of the learning rate; null: 1.");
  return table;
}

Table<EdgeRecipe> make_edge_table() {
  Table<EdgeRecipe> table;
  table.required("ranks", &EdgeRecipe::ranks).range(at_least(0)).doc("Workers of the edge.");
  table.required("weight", &EdgeRecipe::weight)
      .range(above_up_to(0, 1))
      .doc("Weight of a worker's own copy.");
  return table;
}

Table<TopologyRecipe> make_custom_topology_table() {
  Table<TopologyRecipe> table;
  table.required("phases", &TopologyRecipe::phases)
      .check(mistake_in_phases)
      .doc("List of phases, each a list of edges.");
  return table;
}

}  // namespace

std::vector<std::string> format_names(const Names& names) { return names_in(names.formats); }

bool is_common_source_key(const std::string& name) {
  return name == "format" || name == "limit" || name == "holdout";
}

Table<SourceRecipe> source_table(const SourceFormat& format) {
  const auto takes = [&](const std::string& name) {
    return std::find(format.keys.begin(), format.keys.end(), name) != format.keys.end();
  };
  std::size_t found = 0;
  Table<SourceRecipe> table = all_source_keys().keep([&](const Key<SourceRecipe>& key) {
    if (is_common_source_key(key.name())) return true;
    found += takes(key.name()) ? 1 : 0;
    return takes(key.name());
  });
  if (found != format.keys.size()) {
    throw std::logic_error("data format '" + format.name +
                           "' takes keys that sources do not have: " + join(format.keys));
  }
  return table;
}

Table<SourceRecipe> table_of_set_keys(const SourceRecipe& source) {
  return all_source_keys().keep([&](const Key<SourceRecipe>& key) {
    return is_common_source_key(key.name()) || !key.is_default(source);
  });
}

template <>
const Table<ParamGroupRecipe>& table_of<ParamGroupRecipe>() {
  static const Table<ParamGroupRecipe> table = make_param_group_table();
  return table;
}

template <>
const Table<EdgeRecipe>& table_of<EdgeRecipe>() {
  static const Table<EdgeRecipe> table = make_edge_table();
  return table;
}

const Table<TopologyRecipe>& custom_topology_table() {
  static const Table<TopologyRecipe> table = make_custom_topology_table();
  return table;
}

}  // namespace decent::config
