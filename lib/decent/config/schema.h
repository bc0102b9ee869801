#pragma once
// The tables of all keys of the recipe. Adding a key is one line there and one member in recipe.h.

#include <vector>

#include "decent/config/table.h"

namespace decent::config {

// Values whose type only a later release will know; they are accepted and not kept.
struct AnyList {
  bool is_empty = true;
  bool operator==(const AnyList&) const = default;
};
struct AnyValue {
  bool operator==(const AnyValue&) const = default;
};

template <>
struct Codec<AnyList> {
  static bool read(const Slot& slot, AnyList& out);
  static std::string print(const AnyList& value) { return value.is_empty ? "[]" : "[..]"; }
  static std::string type(const Limits&) { return "a list"; }
};

template <>
struct Codec<AnyValue> {
  static bool read(const Slot& slot, AnyValue&) { return slot.value.kind != Value::Kind::broken; }
  static std::string print(const AnyValue&) { return "null"; }
  static std::string type(const Limits&) { return "any value"; }
};

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
inline constexpr bool kHasTable<HoldoutRecipe> = true;
template <>
inline constexpr bool kHasTable<EdgeRecipe> = true;

template <>
const Table<ParamGroupRecipe>& table_of<ParamGroupRecipe>();
template <>
const Table<HoldoutRecipe>& table_of<HoldoutRecipe>();
template <>
const Table<EdgeRecipe>& table_of<EdgeRecipe>();

const Table<SourceRecipe>& source_table(SourceFormat format);
const Table<TopologyRecipe>& custom_topology_table();
const Table<Recipe>& recipe_table();

/// Every key of the recipe, in order; the keys inside sources, groups and custom topologies are not
/// among them.
std::vector<KeyInfo> recipe_keys();

}  // namespace decent::config
