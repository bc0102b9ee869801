#pragma once
// How a value of each C++ type is read from YAML, printed as YAML and named in messages: Codec<T>.
//
//   bool read(slot, out)      false after reporting the mistake at the value's place
//   std::string print(value)  on one line (YAML flow style), reads back to an equal value
//   std::string type(limits)  "an integer >= 1", for messages and docs
//   std::string items(limits) the plural of type(): "integers >= 1"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decent/config/choices.h"
#include "decent/config/document.h"
#include "decent/config/mistakes.h"
#include "decent/config/names.h"
#include "decent/config/scalars.h"
#include "decent/core/interval.h"
#include "decent/core/text.h"

namespace decent::config {

/// The values of its type that a key allows; for a list, the elements that it allows.
struct Limits {
  Interval range;
  std::vector<std::string> names;  // the texts that are valid; empty: any
  bool path_as_given = false;      // the path is not resolved
};

struct Context {
  Mistakes& mistakes;
  const Names& names;
  std::vector<std::string> known_keys;  // every dotted key, to find misplaced ones
};

/// A value about to be read.
struct Slot {
  const Value& value;
  std::string path;  // dotted key
  Context& context;
  const Limits& limits;
  Where section;          // the position at which a missing key inside the value is reported
  bool nullable = false;  // null is valid too

  /// Reports a mistake and returns false. `expected` does the same with "expected `what`, got ..";
  /// neither reports anything for a broken value.
  bool mistake(const std::string& text) const;
  bool expected(const std::string& what) const;

  /// The slot of an element of the key's list.
  Slot item(const Value& element) const {
    return {element, path, context, limits, element.where, false};
  }
};

/// Reads the text of the value, which must be one of `names` if there are any.
bool read_name(const Slot& slot, const std::vector<std::string>& names, std::string& out);
std::string name_type(const std::vector<std::string>& names);

/// Resolves a path against the folder of the file that it is written in, or against the working
/// folder if it is from --set.
bool resolve_path(const Slot& slot, const std::string& text, std::filesystem::path& out);

template <class T>
struct Codec;

template <>
struct Codec<std::int64_t> {
  static bool read(const Slot& slot, std::int64_t& out);
  static std::string print(std::int64_t value) { return std::to_string(value); }
  static std::string type(const Limits& limits) { return "an integer" + limits.range.text(); }
  static std::string items(const Limits& limits) { return "integers" + limits.range.text(); }
};

template <>
struct Codec<double> {
  static bool read(const Slot& slot, double& out);
  static std::string print(double value) { return number_text(value); }
  static std::string type(const Limits& limits) { return "a number" + limits.range.text(); }
  static std::string items(const Limits& limits) { return "numbers" + limits.range.text(); }
};

template <>
struct Codec<bool> {
  static bool read(const Slot& slot, bool& out);
  static std::string print(bool value) { return value ? "true" : "false"; }
  static std::string type(const Limits&) { return "true or false"; }
};

template <>
struct Codec<std::string> {
  static bool read(const Slot& slot, std::string& out) {
    return read_name(slot, slot.limits.names, out);
  }
  static std::string print(const std::string& value) { return scalar_text(value); }
  static std::string type(const Limits& limits) { return name_type(limits.names); }
  static std::string items(const Limits& limits) {
    return limits.names.empty() ? "texts" : "names of " + join(limits.names);
  }
};

template <>
struct Codec<std::filesystem::path> {
  static bool read(const Slot& slot, std::filesystem::path& out);
  static std::string print(const std::filesystem::path& value) {
    return scalar_text(value.string());
  }
  static std::string type(const Limits&) { return "a path"; }
};

template <NamedEnum E>
struct Codec<E> {
  static bool read(const Slot& slot, E& out) {
    std::string name;
    if (!read_name(slot, names_of<E>(), name)) return false;
    out = value_named<E>(name).value();
    return true;
  }
  static std::string print(E value) { return std::string(name_of(value)); }
  static std::string type(const Limits&) { return name_type(names_of<E>()); }
};

template <class T>
struct Codec<std::optional<T>> {
  static bool read(const Slot& slot, std::optional<T>& out) {
    out.reset();
    if (slot.value.kind == Value::Kind::null) return true;
    Slot inner = slot;
    inner.nullable = true;
    T value{};
    if (!Codec<T>::read(inner, value)) return false;
    out = std::move(value);
    return true;
  }
  static std::string print(const std::optional<T>& value) {
    return value ? Codec<T>::print(*value) : "null";
  }
  static std::string type(const Limits& limits) { return Codec<T>::type(limits) + " or null"; }
};

template <class T>
struct Codec<std::vector<T>> {
  static bool read(const Slot& slot, std::vector<T>& out) {
    if (slot.value.kind != Value::Kind::list) return slot.expected(type(slot.limits));
    bool good = true;
    for (const Value& element : slot.value.items) {
      T value{};
      if (Codec<T>::read(slot.item(element), value)) {
        out.push_back(std::move(value));
      } else {
        good = false;
      }
    }
    return good;
  }
  static std::string print(const std::vector<T>& values) {
    std::vector<std::string> texts;
    texts.reserve(values.size());
    for (const T& value : values) texts.push_back(Codec<T>::print(value));
    return "[" + join(texts) + "]";
  }
  static std::string type(const Limits& limits) { return "a list of " + Codec<T>::items(limits); }
  static std::string items(const Limits& limits) { return "lists of " + Codec<T>::items(limits); }
};

template <class T, std::size_t N>
struct Codec<std::array<T, N>> {
  static bool read(const Slot& slot, std::array<T, N>& out) {
    std::vector<T> values;
    if (slot.value.kind != Value::Kind::list || slot.value.items.size() != N) {
      return slot.expected(type(slot.limits));
    }
    if (!Codec<std::vector<T>>::read(slot, values)) return false;
    std::copy(values.begin(), values.end(), out.begin());
    return true;
  }
  static std::string print(const std::array<T, N>& values) {
    return Codec<std::vector<T>>::print({values.begin(), values.end()});
  }
  static std::string type(const Limits& limits) {
    return "a list of " + std::to_string(N) + " " + Codec<T>::items(limits);
  }
};

}  // namespace decent::config
