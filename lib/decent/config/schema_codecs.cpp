// Values that are more than one scalar: model inputs, paths, sources, topologies.

#include <algorithm>
#include <string_view>

#include "decent/config/option_keys.h"
#include "decent/config/schema.h"

namespace decent::config {
namespace {

// YAML readers do not recognise longer keys.
constexpr std::size_t kMaxArgument = 255;

bool can_be_key(const std::string& name) {
  return !name.empty() && name.size() <= kMaxArgument && name.find('\0') == std::string::npos;
}

bool read_field(const Slot& slot, const std::string& argument, std::vector<ModelInput>& out) {
  ModelInput input;
  input.argument = argument;
  const Limits any;
  const Slot field{slot.value, slot.path, slot.context, any, slot.section, false};
  if (!Codec<std::string>::read(field, input.field)) return false;
  out.push_back(std::move(input));
  return true;
}

bool read_named_inputs(const Slot& slot, std::vector<ModelInput>& out) {
  report_duplicates(slot.value, slot.path, slot.context);
  bool good = true;
  for (const Entry& entry : slot.value.entries) {
    if (!can_be_key(entry.key)) {
      slot.context.mistakes.add(entry.where, slot.path, "expected the name of an argument");
      good = false;
      continue;
    }
    const Slot field{
        entry.value, dotted(slot.path, entry.key), slot.context, slot.limits, entry.where, false};
    good = read_field(field, entry.key, out) && good;
  }
  return good;
}

// Reads a mapping whose keys depend on the row that its first key names.
template <class T>
bool read_by_row(const Slot& slot, const std::vector<NamedOptions>& rows,
                 Table<T> (*table_of_row)(const NamedOptions&), T& out) {
  if (slot.value.kind != Value::Kind::mapping) return slot.expected(Codec<T>::type(slot.limits));
  const std::size_t before = slot.context.mistakes.size();
  const Table<T> without_row = table_of_row({});
  const Entry* entry = slot.value.find(without_row.names().front());
  const auto name = entry != nullptr ? to_text(entry->value) : std::nullopt;
  if (const NamedOptions* row = name ? find_named(rows, *name) : nullptr) {
    table_of_row(*row).read(slot.value, slot.section, slot.path, slot.context, out);
  } else {
    // Without a row, the other keys cannot be checked.
    without_row.front().read(&slot.value, slot.section, slot.path, slot.context, out);
  }
  return slot.context.mistakes.size() == before;
}

Value empty_mapping(Where where) {
  Value mapping;
  mapping.kind = Value::Kind::mapping;
  mapping.where = where;
  return mapping;
}

// A transform given by its name, or as a mapping from its name to the values of its keys.
struct GivenTransform {
  std::string name;
  Value keys;
};

std::optional<GivenTransform> given_transform(const Value& value) {
  if (const auto name = to_text(value)) return GivenTransform{*name, empty_mapping(value.where)};
  if (value.kind != Value::Kind::mapping || value.entries.size() != 1) return std::nullopt;
  const Entry& entry = value.entries.front();
  if (entry.value.kind == Value::Kind::null)
    return GivenTransform{entry.key, empty_mapping(entry.where)};
  return GivenTransform{entry.key, entry.value};
}

// A value that is not a mapping is the value of the first key.
Value with_first_key(const NamedOptions& transform, const Value& value) {
  const bool is_plain = value.kind == Value::Kind::scalar || value.kind == Value::Kind::list;
  if (!is_plain || transform.keys.empty()) return value;
  Value mapping = empty_mapping(value.where);
  mapping.entries.push_back({transform.keys.front().name, value.where, value});
  return mapping;
}

}  // namespace

bool Codec<std::vector<ModelInput>>::read(const Slot& slot, std::vector<ModelInput>& out) {
  const bool is_list = slot.value.kind == Value::Kind::list && !slot.value.items.empty();
  const bool is_mapping = slot.value.kind == Value::Kind::mapping && !slot.value.entries.empty();
  if (is_mapping) return read_named_inputs(slot, out);
  if (!is_list) return slot.expected(type(slot.limits));
  bool good = true;
  for (const Value& item : slot.value.items) good = read_field(slot.item(item), "", out) && good;
  return good;
}

std::string Codec<std::vector<ModelInput>>::print(const std::vector<ModelInput>& inputs) {
  const bool named = !inputs.empty() && !inputs.front().argument.empty();
  std::vector<std::string> texts;
  texts.reserve(inputs.size());
  for (const ModelInput& input : inputs) {
    texts.push_back((named ? key_text(input.argument) + ": " : "") + scalar_text(input.field));
  }
  return named ? "{" + join(texts) + "}" : "[" + join(texts) + "]";
}

std::string Codec<std::vector<ModelInput>>::type(const Limits&) {
  return "a list of data fields or {input name: field}, not empty";
}

bool Codec<std::vector<PrefixRecipe>>::read(const Slot& slot, std::vector<PrefixRecipe>& out) {
  if (slot.value.kind != Value::Kind::mapping) return slot.expected(type(slot.limits));
  report_duplicates(slot.value, slot.path, slot.context);
  bool good = true;
  for (const Entry& entry : slot.value.entries) {
    const bool is_empty = entry.value.kind == Value::Kind::scalar && entry.value.text.empty();
    const auto text = to_text(entry.value);
    if (text || is_empty) {
      out.push_back({.from = entry.key, .to = text.value_or("")});
      continue;
    }
    slot.context.mistakes.add(entry.where, dotted(slot.path, entry.key),
                              "expected text, got " + shown(entry.value));
    good = false;
  }
  return good;
}

std::string Codec<std::vector<PrefixRecipe>>::print(const std::vector<PrefixRecipe>& prefixes) {
  std::vector<std::string> texts;
  for (const PrefixRecipe& each : prefixes)
    texts.push_back(key_text(each.from) + ": " + scalar_text(each.to));
  return "{" + join(texts) + "}";
}

bool Codec<NamedCounts>::read(const Slot& slot, NamedCounts& out) {
  if (slot.value.kind != Value::Kind::mapping) return slot.expected(type(slot.limits));
  report_duplicates(slot.value, slot.path, slot.context);
  bool good = true;
  for (const Entry& entry : slot.value.entries) {
    if (!can_be_key(entry.key)) {
      slot.context.mistakes.add(entry.where, slot.path, "expected a name");
      good = false;
      continue;
    }
    const Slot count{
        entry.value, dotted(slot.path, entry.key), slot.context, slot.limits, entry.where, false};
    std::int64_t value = 0;
    good = Codec<std::int64_t>::read(count, value) && good;
    out.emplace_back(entry.key, value);
  }
  return good;
}

std::string Codec<NamedCounts>::print(const NamedCounts& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts)
    texts.push_back(key_text(name) + ": " + std::to_string(count));
  return "{" + join(texts) + "}";
}

std::string Codec<NamedCounts>::type(const Limits& limits) {
  return "a mapping of " + Codec<std::int64_t>::items(limits);
}

bool Codec<BatchSizeRecipe>::read(const Slot& slot, BatchSizeRecipe& out) {
  if (slot.value.kind == Value::Kind::mapping) {
    const std::size_t before = slot.context.mistakes.size();
    batch_size_table().read(slot.value, slot.section, slot.path, slot.context, out);
    return slot.context.mistakes.size() == before;
  }
  if (slot.value.kind != Value::Kind::scalar) return slot.expected(type(slot.limits));
  return Codec<std::int64_t>::read(slot, out.usual);
}

std::string Codec<BatchSizeRecipe>::print(const BatchSizeRecipe& sizes) {
  return sizes.is_one() ? std::to_string(sizes.usual) : batch_size_table().print(sizes);
}

std::string Codec<BatchSizeRecipe>::type(const Limits& limits) {
  return Codec<std::int64_t>::type(limits) + " or {default: .., hosts: .., ranks: ..}";
}

bool Codec<std::vector<std::filesystem::path>>::read(const Slot& slot,
                                                     std::vector<std::filesystem::path>& out) {
  const bool is_list = slot.value.kind == Value::Kind::list;
  if (is_list && slot.value.items.empty()) return slot.expected(type(slot.limits));
  if (!is_list && !to_text(slot.value)) return slot.expected(type(slot.limits));
  if (!is_list) return Codec<std::filesystem::path>::read(slot, out.emplace_back());
  bool good = true;
  for (const Value& item : slot.value.items) {
    good = Codec<std::filesystem::path>::read(slot.item(item), out.emplace_back()) && good;
  }
  return good;
}

std::string Codec<std::vector<std::filesystem::path>>::print(
    const std::vector<std::filesystem::path>& paths) {
  if (paths.size() == 1) return scalar_text(paths.front().string());
  std::vector<std::string> texts;
  texts.reserve(paths.size());
  for (const auto& path : paths) texts.push_back(scalar_text(path.string()));
  return "[" + join(texts) + "]";
}

bool Codec<SourceRecipe>::read(const Slot& slot, SourceRecipe& out) {
  return read_by_row(slot, slot.context.names.formats, source_table, out);
}

std::string Codec<SourceRecipe>::print(const SourceRecipe& source) {
  std::string text = "{format: " + scalar_text(source.format);
  if (!source.options.all().empty()) text += ", " + print_options(source.options);
  return text + ", limit: " + Codec<std::optional<std::int64_t>>::print(source.limit) +
         ", holdout: " + Codec<std::optional<HoldoutRecipe>>::print(source.holdout) + "}";
}

std::string Codec<SourceRecipe>::type(const Limits&) {
  return "a source such as {format: builtin, name: digits, split: train}";
}

// `flip`, `{flip: 0.5}` and `{flip: {p: 0.5}}` are the same.
bool Codec<TransformRecipe>::read(const Slot& slot, TransformRecipe& out) {
  const std::optional<GivenTransform> given = given_transform(slot.value);
  if (!given) return slot.expected(type(slot.limits));
  const std::vector<NamedOptions>& known = slot.context.names.transforms;
  const NamedOptions* transform = find_named(known, given->name);
  if (transform == nullptr) {
    std::string other;
    Value name = slot.value;
    name.kind = Value::Kind::scalar;
    name.text = given->name;
    return read_name({name, slot.path, slot.context, slot.limits, slot.section, false},
                     names_in(known), other);
  }
  const std::size_t before = slot.context.mistakes.size();
  const std::string path = dotted(slot.path, given->name);
  transform_table(*transform)
      .read(with_first_key(*transform, given->keys), given->keys.where, path, slot.context, out);
  out.name = given->name;
  return slot.context.mistakes.size() == before;
}

std::string Codec<TransformRecipe>::print(const TransformRecipe& transform) {
  return "{" + key_text(transform.name) + ": {" + print_options(transform.options) + "}}";
}

bool Codec<ScheduleLink>::read(const Slot& slot, ScheduleLink& out) {
  return read_by_row(slot, links(), link_table, out);
}

std::string Codec<ScheduleLink>::print(const ScheduleLink& link) {
  return "{name: " + link.name +
         ", steps: " + Codec<std::optional<std::int64_t>>::print(link.steps) +
         ", lr_scale: " + number_text(link.lr_scale) + ", " + print_options(link.options) + "}";
}

bool Codec<TopologyRecipe>::read(const Slot& slot, TopologyRecipe& out) {
  if (slot.value.kind == Value::Kind::mapping) {
    const std::size_t before = slot.context.mistakes.size();
    custom_topology_table().read(slot.value, slot.section, slot.path, slot.context, out);
    return slot.context.mistakes.size() == before;
  }
  if (!to_text(slot.value)) return slot.expected(type(slot.limits));
  return Codec<std::string>::read(slot, out.name);
}

std::string Codec<TopologyRecipe>::print(const TopologyRecipe& topology) {
  if (topology.phases.empty()) return Codec<std::string>::print(topology.name);
  return custom_topology_table().print(topology);
}

std::string Codec<TopologyRecipe>::type(const Limits& limits) {
  return Codec<std::string>::type(limits) + " or {phases: [..]}";
}

}  // namespace decent::config
