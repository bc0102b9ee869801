// The tables of sources, of how they are sampled, and of mappings that are elements of lists.

#include <algorithm>
#include <set>
#include <stdexcept>

#include "decent/config/option_keys.h"
#include "decent/config/schema.h"
#include "decent/core/text.h"

namespace decent::config {
namespace {

Table<HoldoutRecipe> make_holdout_table() {
  Table<HoldoutRecipe> table;
  table.required("fraction", &HoldoutRecipe::fraction)
      .range(within_open(0, 1))
      .doc("Share of the samples that is kept for evaluation.");
  table.key("seed", &HoldoutRecipe::seed)
      .range(at_least(0))
      .doc("Seed that selects the held-out samples, independent of the recipe's `seed`.");
  table.required("part", &HoldoutRecipe::part)
      .doc(
          "Which of the samples this source has: those for training, or those kept for "
          "evaluation.");
  return table;
}

// A rank is written without a sign and leading zeros, as messages write it.
std::string mistake_in_ranks(const NamedCounts& sizes) {
  for (const auto& [rank, size] : sizes) {
    const bool is_number = rank.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || (rank.size() > 1 && rank.front() == '0'))
      return "expected ranks such as 0 or 3, got " + in_quotes(rank);
  }
  return "";
}

Table<BatchSizeRecipe> make_batch_size_table() {
  using R = BatchSizeRecipe;
  Table<R> table;
  table.key("default", &R::usual)
      .range(at_least(1))
      .doc("Samples per micro-batch of the workers that `hosts` and `ranks` do not name.");
  table.key("hosts", &R::hosts)
      .range(at_least(1))
      .doc("Samples per micro-batch of each worker on a host, by the host's name.");
  table.key("ranks", &R::ranks)
      .range(at_least(1))
      .check(mistake_in_ranks)
      .doc("Samples per micro-batch of single workers, by rank, whatever their host has.");
  return table;
}

Table<SamplingRecipe> make_sampling_table() {
  Table<SamplingRecipe> table;
  table.required("weights", &SamplingRecipe::weights)
      .doc(
          "Field of the training data with one number >= 0 for each sample, to which its chance is "
          "proportional; `class_balanced`: all classes of `model.target` are equally likely.");
  table.key("replacement", &SamplingRecipe::replacement)
      .doc(
          "Whether an epoch may draw a sample several times; `false`: at most once, samples of "
          "larger weights earlier on average.");
  return table;
}

// The mistake in one phase, or an empty text.
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
      .doc("Factor for the learning rate; null: 1.");
  table.key("optimizer", &ParamGroupRecipe::optimizer)
      .one_of([](const Names&) { return std::vector<std::string>{"adamw"}; })
      .doc("Beside `optimizer.name: muon`: adamw, also for the group's matrices; null: muon.");
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

Table<SourceRecipe> source_table(const NamedOptions& format) {
  using R = SourceRecipe;
  Table<R> table;
  table.required("format", &R::format)
      .one_of(format_names)
      .doc("Format of the data; the other keys depend on it.");
  for (const OptionKey& key : format.keys)
    table.add_key(std::make_unique<OptionOf<R>>(key, &R::options));
  table.key("limit", &R::limit)
      .range(at_least(1))
      .doc("Use only the first N samples; null: all of them.");
  table.key("holdout", &R::holdout)
      .doc(
          "Split the samples that `limit` leaves between two sources, one with `part: train` and "
          "one with `part: eval`.");
  return table;
}

Table<TransformRecipe> transform_table(const NamedOptions& transform) {
  Table<TransformRecipe> table;
  for (const OptionKey& key : transform.keys)
    table.add_key(std::make_unique<OptionOf<TransformRecipe>>(key, &TransformRecipe::options));
  return table;
}

const Table<BatchSizeRecipe>& batch_size_table() {
  static const Table<BatchSizeRecipe> table = make_batch_size_table();
  return table;
}

template <>
const Table<HoldoutRecipe>& table_of<HoldoutRecipe>() {
  static const Table<HoldoutRecipe> table = make_holdout_table();
  return table;
}

template <>
const Table<SamplingRecipe>& table_of<SamplingRecipe>() {
  static const Table<SamplingRecipe> table = make_sampling_table();
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
