// The tables of sources and of what lists of mappings hold.

#include <set>

#include "decent/config/schema.h"
#include "decent/core/text.h"

namespace decent::config {
namespace {

void add_path(Table<SourceRecipe>& table, const std::string& meaning) {
  table.required("path", &SourceRecipe::paths).doc(meaning);
}

// The keys that only this format has. Those of formats that do not work yet are checked as far as
// their types are known, and not kept.
void add_keys_of(SourceFormat format, Table<SourceRecipe>& table) {
  switch (format) {
    case SourceFormat::builtin:
      table.required("name", &SourceRecipe::name).doc("Name of the data set, e.g. `digits`.");
      table.required("split", &SourceRecipe::split).doc("Which part of the data set.");
      return;
    case SourceFormat::safetensors:
    case SourceFormat::npz:
      add_path(table, "The file, a list of files or a glob; array names are the fields.");
      return;
    case SourceFormat::idx:
      table.required("images", &SourceRecipe::images).doc("The file of the images.");
      table.required("labels", &SourceRecipe::labels).doc("The file of the labels.");
      return;
    case SourceFormat::images:
      add_path(table, "The folder, which holds one folder per class.");
      table.unkept<AnyValue>("size").shown_default("-").doc(
          "Size that the images are brought to, in pixels.");
      table.unkept<std::int64_t>("channels", 3)
          .range(within(1, 4))
          .shown_default("-")
          .doc("Channels per pixel.");
      return;
    case SourceFormat::csv:
      add_path(table, "The file, a list of files or a glob.");
      table.unkept<AnyValue>("x").shown_default("-").doc("Input columns, by name or number.");
      table.unkept<AnyValue>("y").shown_default("-").doc("Target columns, by name or number.");
      table.unkept<bool>("header", true)
          .shown_default("-")
          .doc("Whether the first line names the columns.");
      table.unkept<AnyValue>("missing").shown_default("-").doc("What stands for a missing value.");
      return;
    case SourceFormat::tokens:
      add_path(table, "The file, a list of files or a glob.");
      table.unkept<AnyValue>("dtype").shown_default("-").doc("Type of a token in the file.");
      table.unkept<std::int64_t>("length")
          .range(at_least(1))
          .shown_default("-")
          .doc("Tokens per sample.");
      return;
    case SourceFormat::text:
      add_path(table, "The file, a list of files or a glob.");
      table.unkept<std::int64_t>("length")
          .range(at_least(1))
          .shown_default("-")
          .doc("Tokens per sample.");
      return;
  }
}

Table<SourceRecipe> make_source_table(SourceFormat format) {
  Table<SourceRecipe> table;
  table.required("format", &SourceRecipe::format)
      .only(SourceFormat::builtin, SourceFormat::safetensors, SourceFormat::npz)
      .doc("Format of the data; the other keys depend on it.");
  add_keys_of(format, table);
  table.key("limit", &SourceRecipe::limit, std::nullopt)
      .range(at_least(1))
      .not_yet()
      .doc("Use only that many samples, the first ones.");
  table.key("holdout", &SourceRecipe::holdout, std::nullopt)
      .not_yet()
      .doc("Split the samples: `{fraction, seed, part}`; one part trains, the other evaluates.");
  return table;
}

// One table per format, in the order of the enum.
std::vector<Table<SourceRecipe>> make_source_tables() {
  std::vector<Table<SourceRecipe>> tables;
  for (const auto& choice : choices(SourceFormat{})) {
    tables.push_back(make_source_table(choice.value));
  }
  return tables;
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

Table<HoldoutRecipe> make_holdout_table() {
  Table<HoldoutRecipe> table;
  table.required("fraction", &HoldoutRecipe::fraction)
      .range(within_open(0, 1))
      .doc("Share of the samples that is held out for evaluation.");
  table.key("seed", &HoldoutRecipe::seed, 0).range(at_least(0)).doc("Seed of the split.");
  table.required("part", &HoldoutRecipe::part).doc("Which part this source is.");
  return table;
}

Table<ParamGroupRecipe> make_param_group_table() {
  Table<ParamGroupRecipe> table;
  table.required("match", &ParamGroupRecipe::match).doc("Glob over parameter names.");
  table.key("weight_decay", &ParamGroupRecipe::weight_decay, std::nullopt)
      .range(at_least(0))
      .doc("Weight decay of the group; null: the optimizer's.");
  table.key("lr_scale", &ParamGroupRecipe::lr_scale, std::nullopt)
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

const Table<SourceRecipe>& source_table(SourceFormat format) {
  static const std::vector<Table<SourceRecipe>> tables = make_source_tables();
  return tables.at(static_cast<std::size_t>(format));
}

template <>
const Table<HoldoutRecipe>& table_of<HoldoutRecipe>() {
  static const Table<HoldoutRecipe> table = make_holdout_table();
  return table;
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
