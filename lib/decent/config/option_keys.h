#pragma once
// The recipe's keys of a data format or a transform, which are defined in another room
// (core/options.h).

#include <string>
#include <utility>

#include "decent/config/table.h"
#include "decent/core/options.h"

namespace decent::config {

/// Reads a value of the key's type. Returns false after reporting a mistake.
bool read_option(const Slot& slot, OptionType type, OptionValue& out);
/// The value on one line.
std::string print_option(const OptionValue& value);
/// All values as in "{name: value, ..}", without the braces.
std::string print_options(const Options& options);
/// "an integer >= 1 or null", for messages and the reference.
std::string option_type(const OptionKey& key);
Limits option_limits(const OptionKey& key);

/// Such a key as a key of the section struct S, which keeps the values of all such keys together.
template <class S>
class OptionOf final : public Key<S> {
 public:
  OptionOf(OptionKey key, Options S::*member)
      : Key<S>(key.name), key_(std::move(key)), member_(member) {}

  void read(const Entry* entry, Where section, const std::string& path, Context& context,
            S& out) const override {
    if (entry == nullptr) {
      if (key_.fallback) return (out.*member_).set(key_.name, *key_.fallback);
      context.mistakes.add(section, path, "missing; expected " + option_type(key_));
      return;
    }
    const Limits limits = option_limits(key_);
    const bool nullable = key_.fallback && std::holds_alternative<std::monostate>(*key_.fallback);
    if (nullable && entry->value.kind == Value::Kind::null)
      return (out.*member_).set(key_.name, std::monostate{});
    const Slot slot{entry->value, path, context, limits, entry->where, nullable};
    OptionValue value;
    if (read_option(slot, key_.type, value)) (out.*member_).set(key_.name, std::move(value));
  }

  std::string print(const S& section) const override {
    return print_option((section.*member_).value(key_.name));
  }
  bool is_default(const S& section) const override {
    return key_.fallback && (section.*member_).value(key_.name) == *key_.fallback;
  }

  void describe(const std::string& prefix, const Names&, std::vector<KeyInfo>& out) const override {
    out.push_back({.name = prefix + key_.name,
                   .type = option_type(key_),
                   .fallback = key_.fallback ? print_option(*key_.fallback) : "",
                   .meaning = key_.meaning});
  }

 private:
  OptionKey key_;
  Options S::*member_;
};

}  // namespace decent::config
