#pragma once
// The recipe's keys that rows of tables in other rooms define: optimizers, schedules, data formats,
// transforms (core/options.h).

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
std::string option_type(const OptionKey& key, const Names& names);
Limits option_limits(const OptionKey& key, const Names& names);

/// "0.1 for adamw, accum_adamw": the rows whose value, as printed, is not the usual one. Rows
/// without a value (an empty text) are left out.
std::string unusual_values(const std::string& usual, const std::vector<NamedOptions>& rows,
                           const std::function<std::string(const NamedOptions&)>& value_of);

/// The keys of a section in which a row is chosen by its name: those of all rows, each once. Their
/// meanings, which are phrases, become sentences that name the rows that take the key, and the
/// defaults of rows that have another one.
std::vector<OptionKey> shared_keys(const std::vector<NamedOptions>& rows);

/// Such a key as a key of the section struct S, which keeps the values of all such keys together.
template <class S>
class OptionOf final : public NamedKey<S> {
 public:
  /// `traits`: what is known about the key besides its type, default and meaning.
  OptionOf(OptionKey key, Options S::*member, KeyInfo traits = {})
      : NamedKey<S>(key.name), key_(std::move(key)), member_(member), traits_(std::move(traits)) {}

  void read_entry(const Entry* entry, Where section, const std::string& path, Context& context,
                  S& out) const override {
    if (entry == nullptr) {
      if (key_.fallback) return (out.*member_).set(key_.name, *key_.fallback);
      context.mistakes.add(section, path, "missing; expected " + option_type(key_, context.names));
      return;
    }
    const Limits limits = option_limits(key_, context.names);
    const bool nullable = key_.is_nullable();
    if (nullable && entry->value.kind == Value::Kind::null)
      return (out.*member_).set(key_.name, std::monostate{});
    const Slot slot{entry->value, path, context, limits, entry->where, nullable};
    OptionValue value;
    if (read_option(slot, key_.type, value)) (out.*member_).set(key_.name, std::move(value));
  }

  void values(const S& section, const std::string& prefix, KeyValues& out) const override {
    out.emplace_back(prefix + key_.name, print_option((section.*member_).value(key_.name)));
  }

  void describe(const std::string& prefix, const Names& names,
                std::vector<KeyInfo>& out) const override {
    KeyInfo& info = out.emplace_back(traits_);
    info.name = prefix + key_.name;
    info.type = option_type(key_, names);
    info.fallback = key_.fallback ? print_option(*key_.fallback) : "";
    info.meaning = key_.meaning;
  }

 private:
  OptionKey key_;
  Options S::*member_;
  KeyInfo traits_;
};

/// The keys of all rows of a table, one of which the section names: see shared_keys().
template <class S>
class RowKeys final : public Key<S> {
 public:
  using Rows = std::function<std::vector<NamedOptions>(const Names&)>;

  /// `traits` are those of every key.
  RowKeys(Rows rows, Options S::*member, KeyInfo traits = {})
      : rows_(std::move(rows)), member_(member), traits_(std::move(traits)) {}

  void read(const Value* mapping, Where section, const std::string& path, Context& context,
            S& out) const override {
    for (const OptionOf<S>& key : keys(context.names))
      key.read(mapping, section, path, context, out);
  }
  void add_names(const Names& names, std::vector<std::string>& out) const override {
    for (const OptionOf<S>& key : keys(names)) out.push_back(key.name());
  }
  void describe(const std::string& prefix, const Names& names,
                std::vector<KeyInfo>& out) const override {
    const std::vector<OptionOf<S>> all = keys(names);
    for (const OptionOf<S>& key : all) key.describe(prefix, names, out);
    if (!all.empty()) return;
    out.emplace_back(traits_).name = prefix + "*";
  }
  void values(const S& section, const std::string& prefix, KeyValues& out) const override {
    for (const auto& [name, value] : (section.*member_).all())
      out.emplace_back(prefix + name, print_option(value));
  }

 private:
  std::vector<OptionOf<S>> keys(const Names& names) const {
    std::vector<OptionOf<S>> all;
    for (OptionKey& key : shared_keys(rows_(names)))
      all.emplace_back(std::move(key), member_, traits_);
    return all;
  }

  Rows rows_;
  Options S::*member_;
  KeyInfo traits_;
};

template <class S>
void add_rows(Table<S>& table, typename RowKeys<S>::Rows rows, Options S::*member,
              KeyInfo traits = {}) {
  table.add_key(std::make_unique<RowKeys<S>>(std::move(rows), member, std::move(traits)));
}

}  // namespace decent::config
