#include "decent/config/option_keys.h"

#include <map>
#include <utility>

#include "decent/config/schema.h"

namespace decent::config {
namespace {

template <class T>
bool read_as(const Slot& slot, OptionValue& out) {
  T value{};
  if (!Codec<T>::read(slot, value)) return false;
  out = std::move(value);
  return true;
}

template <class T>
std::string name_of_several(const Limits& limits) {
  return Codec<T>::type(limits) + " or " + Codec<std::vector<T>>::type(limits);
}

// A single value without brackets is a list with one element.
template <class T>
bool read_one_or_several(const Slot& slot, OptionValue& out) {
  const bool is_list = slot.value.kind == Value::Kind::list;
  if (is_list && slot.value.items.empty()) return slot.expected(name_of_several<T>(slot.limits));
  if (is_list) return read_as<std::vector<T>>(slot, out);
  T value{};
  if (!Codec<T>::read(slot, value)) return false;
  out = std::vector<T>{std::move(value)};
  return true;
}

struct Printer {
  std::string operator()(std::monostate) const { return "null"; }
  template <class T>
  std::string operator()(const T& value) const {
    return Codec<T>::print(value);
  }
};

// How values of a type are read, and the name of the type.
struct Reader {
  bool (*read)(const Slot& slot, OptionValue& out);
  std::string (*name)(const Limits& limits);
};

template <class T>
constexpr Reader reader() {
  return {read_as<T>, Codec<T>::type};
}

template <class T>
constexpr Reader reader_of_several() {
  return {read_one_or_several<T>, name_of_several<T>};
}

const Reader& reader_of(OptionType type) {
  static const std::map<OptionType, Reader> readers = {
      {OptionType::boolean, reader<bool>()},
      {OptionType::integer, reader<std::int64_t>()},
      {OptionType::number, reader<double>()},
      {OptionType::text, reader<std::string>()},
      {OptionType::path, reader<std::filesystem::path>()},
      {OptionType::two_numbers, reader<std::array<double, 2>>()},
      {OptionType::integers, reader_of_several<std::int64_t>()},
      {OptionType::numbers, reader_of_several<double>()},
      {OptionType::texts, reader_of_several<std::string>()},
      {OptionType::paths, reader<std::vector<std::filesystem::path>>()}};
  return readers.at(type);
}

std::string takers_of(const std::string& key, const std::vector<NamedOptions>& rows) {
  std::vector<std::string> taking;
  for (const NamedOptions& row : rows)
    if (row.key(key) != nullptr) taking.push_back(row.name);
  return taking.size() == rows.size() ? "all" : join(taking);
}

std::string other_defaults(const OptionKey& key, const std::vector<NamedOptions>& rows) {
  const auto printed = [&](const NamedOptions& row) {
    const OptionKey* own = row.key(key.name);
    return own == nullptr || !own->fallback ? "" : print_option(*own->fallback);
  };
  const std::string text =
      unusual_values(print_option(key.fallback.value_or(kNull)), rows, printed);
  return text.empty() ? "" : "; default " + text;
}

}  // namespace

std::string unusual_values(const std::string& usual, const std::vector<NamedOptions>& rows,
                           const std::function<std::string(const NamedOptions&)>& value_of) {
  std::string text;
  std::string last;
  for (const NamedOptions& row : rows) {
    const std::string value = value_of(row);
    if (value.empty() || value == usual) continue;
    text +=
        value == last ? ", " + row.name : (text.empty() ? "" : ", ") + value + " for " + row.name;
    last = value;
  }
  return text;
}

bool read_option(const Slot& slot, OptionType type, OptionValue& out) {
  return reader_of(type).read(slot, out);
}

std::string print_option(const OptionValue& value) { return std::visit(Printer{}, value); }

std::string print_options(const Options& options) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : options.all())
    texts.push_back(key_text(name) + ": " + print_option(value));
  return join(texts);
}

std::string option_type(const OptionKey& key, const Names& names) {
  return reader_of(key.type).name(option_limits(key, names)) +
         (key.is_nullable() ? " or null" : "");
}

Limits option_limits(const OptionKey& key, const Names& names) {
  return {.range = key.range, .names = key.is_metric ? names.metrics : key.names};
}

std::vector<OptionKey> shared_keys(const std::vector<NamedOptions>& rows) {
  std::vector<OptionKey> keys;
  for (const NamedOptions& row : rows) {
    for (const OptionKey& key : row.keys) {
      if (find_named(keys, key.name) != nullptr) continue;
      keys.push_back(key);
      keys.back().meaning +=
          " (" + takers_of(key.name, rows) + ")" + other_defaults(key, rows) + ".";
    }
  }
  return keys;
}

}  // namespace decent::config
