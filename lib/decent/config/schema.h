#pragma once
// The tables of all keys of the recipe. Adding a key is one entry there and one member in recipe.h.

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

/// A name or {phases: ..}.
template <>
struct Codec<TopologyRecipe> {
  static bool read(const Slot& slot, TopologyRecipe& out);
  static std::string print(const TopologyRecipe& topology);
  static std::string type(const Limits&);
};

template <>
inline constexpr bool kHasTable<ParamGroupRecipe> = true;
template <>
inline constexpr bool kHasTable<EdgeRecipe> = true;

template <>
const Table<ParamGroupRecipe>& table_of<ParamGroupRecipe>();
template <>
const Table<EdgeRecipe>& table_of<EdgeRecipe>();

std::vector<std::string> format_names(const Names& names);
/// The keys of a source of that format: `format`, those that the format takes, those that all take.
/// Throws std::logic_error where it takes one that sources do not have.
Table<SourceRecipe> source_table(const SourceFormat& format);
/// The keys that sources of all formats take.
bool is_common_source_key(const std::string& name);
/// The keys of a source that are set.
Table<SourceRecipe> table_of_set_keys(const SourceRecipe& source);
const Table<TopologyRecipe>& custom_topology_table();
Table<ParallelRecipe> make_parallel_table();
const Table<Recipe>& recipe_table();

}  // namespace decent::config
