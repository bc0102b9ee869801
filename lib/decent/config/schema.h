#pragma once
// The tables of all keys of the recipe. A new key needs an entry in its table and a member in
// recipe.h.

#include <vector>

#include "decent/config/table.h"

namespace decent::config {

/// A list of fields or {argument: field}.
template <>
struct Codec<std::vector<ModelInput>> {
  static bool read(const Slot& slot, std::vector<ModelInput>& out);
  static std::string print(const std::vector<ModelInput>& inputs);
  static std::string type(const Limits&);
};

/// {from: to, ..}, in the order in which they are written.
template <>
struct Codec<std::vector<PrefixRecipe>> {
  static bool read(const Slot& slot, std::vector<PrefixRecipe>& out);
  static std::string print(const std::vector<PrefixRecipe>& prefixes);
  static std::string type(const Limits&) { return "a mapping {beginning: replacement}"; }
};

/// {name: number, ..}, in the order in which they are written.
template <>
struct Codec<NamedCounts> {
  static bool read(const Slot& slot, NamedCounts& out);
  static std::string print(const NamedCounts& counts);
  static std::string type(const Limits& limits);
};

/// A number or {default: .., hosts: .., ranks: ..}.
template <>
struct Codec<BatchSizeRecipe> {
  static bool read(const Slot& slot, BatchSizeRecipe& out);
  static std::string print(const BatchSizeRecipe& sizes);
  static std::string type(const Limits& limits);
};

/// One path, or a list of them.
template <>
struct Codec<std::vector<std::filesystem::path>> {
  static bool read(const Slot& slot, std::vector<std::filesystem::path>& out);
  static std::string print(const std::vector<std::filesystem::path>& paths);
  static std::string type(const Limits&) { return "a path or a list of paths"; }
};

/// The keys of a source depend on its format.
template <>
struct Codec<SourceRecipe> {
  static bool read(const Slot& slot, SourceRecipe& out);
  static std::string print(const SourceRecipe& source);
  static std::string type(const Limits&);
};

/// A transform's name, {name: its first key's value} or {name: {key: value, ..}}.
template <>
struct Codec<TransformRecipe> {
  static bool read(const Slot& slot, TransformRecipe& out);
  static std::string print(const TransformRecipe& transform);
  static std::string type(const Limits&) { return "a transform such as {flip: 0.5}"; }
  static std::string items(const Limits&) { return "transforms such as {flip: 0.5}"; }
};

/// The keys of a schedule in a chain depend on its name.
template <>
struct Codec<ScheduleLink> {
  static bool read(const Slot& slot, ScheduleLink& out);
  static std::string print(const ScheduleLink& link);
  static std::string type(const Limits&) { return "a schedule such as {name: linear, steps: 100}"; }
  static std::string items(const Limits&) { return "schedules such as {name: linear, steps: 100}"; }
};

/// A name or {phases: ..}.
template <>
struct Codec<TopologyRecipe> {
  static bool read(const Slot& slot, TopologyRecipe& out);
  static std::string print(const TopologyRecipe& topology);
  static std::string type(const Limits&);
};

template <>
inline constexpr bool kHasTable<HoldoutRecipe> = true;
template <>
inline constexpr bool kHasTable<SamplingRecipe> = true;
template <>
inline constexpr bool kHasTable<LoraRecipe> = true;
template <>
inline constexpr bool kHasTable<StopRecipe> = true;
template <>
inline constexpr bool kHasTable<ParamGroupRecipe> = true;
template <>
inline constexpr bool kHasTable<EdgeRecipe> = true;

template <>
const Table<HoldoutRecipe>& table_of<HoldoutRecipe>();
template <>
const Table<SamplingRecipe>& table_of<SamplingRecipe>();
template <>
const Table<LoraRecipe>& table_of<LoraRecipe>();
template <>
const Table<StopRecipe>& table_of<StopRecipe>();
template <>
const Table<ParamGroupRecipe>& table_of<ParamGroupRecipe>();
template <>
const Table<EdgeRecipe>& table_of<EdgeRecipe>();

std::vector<std::string> format_names(const Names& names);
/// The keys of a source of a format: `format`, the format's own keys, and the keys of all sources.
Table<SourceRecipe> source_table(const NamedOptions& format);
/// The keys of a transform.
Table<TransformRecipe> transform_table(const NamedOptions& transform);
/// The keys that sources of all formats take.
bool is_common_source_key(const std::string& name);
/// The keys of data.batch_size as a mapping.
const Table<BatchSizeRecipe>& batch_size_table();
const Table<TopologyRecipe>& custom_topology_table();
Table<OptimizerRecipe> make_optimizer_table();
Table<ParallelRecipe> make_parallel_table();
Table<ScheduleRecipe> make_schedule_table();
/// The schedules that a chain may have.
const std::vector<NamedOptions>& links();
/// The keys of a schedule in a chain.
Table<ScheduleLink> link_table(const NamedOptions& schedule);
const Table<Recipe>& recipe_table();

}  // namespace decent::config
