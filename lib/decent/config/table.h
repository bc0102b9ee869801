#pragma once
// The table of a section's keys: one entry per key says how it is read, checked, defaulted, printed
// and documented.
//
//   Table<OptimizerRecipe> table;
//   table.key("lr", &OptimizerRecipe::lr, 1e-3).range(above(0)).doc("Learning rate at its peak.");
//
// A key that this release does not act on ends with `.not_yet(off)` (only `off` is valid, and is
// the default whatever the first default says), or `.only(a, b)`. Deleting that word lifts the
// restriction.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decent/config/codec.h"

namespace decent::config {

/// A key as the reference and the tests see it.
struct KeyInfo {
  std::string name;      // dotted
  std::string type;      // "an integer >= 1"
  std::string fallback;  // the default, or empty: required
  std::string meaning;
  std::string support;  // what does not work yet, or empty
};

/// One key of the section struct S.
template <class S>
class Key {
 public:
  explicit Key(std::string name) : name_(std::move(name)) {}
  virtual ~Key() = default;
  const std::string& name() const { return name_; }

  virtual void set_default(S& section) const = 0;
  /// `entry` is nullptr where the key is not given; `section` is where that is reported if it had
  /// to be.
  virtual void read(const Entry* entry, Where section, const std::string& path, Context& context,
                    S& out) const = 0;
  /// The value on one line.
  virtual std::string print(const S& section) const = 0;
  /// Whole lines, "key: value".
  virtual std::string print_lines(const S& section) const {
    return name_ + ": " + print(section) + "\n";
  }
  virtual void describe(const std::string& prefix, std::vector<KeyInfo>& out) const = 0;
  /// Every dotted key below `prefix` with its value on one line.
  virtual void values(const S& section, const std::string& prefix,
                      std::vector<std::pair<std::string, std::string>>& out) const {
    out.emplace_back(prefix + name_, print(section));
  }

 private:
  std::string name_;
};

/// A key whose value is a T, kept in a member of S (or nowhere: checked only).
template <class S, class T>
class TypedKey final : public Key<S> {
 public:
  TypedKey(std::string name, T S::*member, T fallback, bool required)
      : Key<S>(std::move(name)),
        member_(member),
        fallback_(std::move(fallback)),
        required_(required) {}

  TypedKey& range(Interval interval) {
    limits_.range = interval;
    return *this;
  }
  TypedKey& one_of(std::vector<std::string> names) {
    limits_.names = std::move(names);
    return *this;
  }
  TypedKey& path_as_given() {
    limits_.path_as_given = true;
    return *this;
  }
  /// A further check; it returns the mistake, or an empty text.
  TypedKey& check(std::function<std::string(const T&)> mistake_in) {
    mistake_in_ = std::move(mistake_in);
    return *this;
  }
  TypedKey& doc(std::string meaning) {
    meaning_ = std::move(meaning);
    return *this;
  }
  /// The default as the reference shows it, where it is worked out from other keys.
  TypedKey& shown_default(std::string text) {
    shown_default_ = std::move(text);
    return *this;
  }

  TypedKey& not_yet() { return not_yet(fallback_); }
  TypedKey& not_yet(T off) {
    missing_feature_ = true;
    return only(std::move(off));
  }
  template <class... Values>
  TypedKey& only(Values... values) {
    supported_values_ = {T(std::move(values))...};
    const auto& list = supported_values_;
    std::vector<std::string> texts;
    texts.reserve(list.size());
    for (const T& value : list) texts.push_back(Codec<T>::print(value));
    if constexpr (NamedEnum<T>) limits_.names = texts;
    return only_if(
        [this](const T& value) {
          return std::find(supported_values_.begin(), supported_values_.end(), value) !=
                 supported_values_.end();
        },
        join(texts));
  }
  /// `text` names the values for which `supported` holds.
  TypedKey& only_if(std::function<bool(const T&)> supported, std::string text) {
    supported_ = std::move(supported);
    supported_text_ = std::move(text);
    return *this;
  }

  void set_default(S& section) const override {
    if (member_ != nullptr) section.*member_ = default_value();
  }

  void read(const Entry* entry, Where section, const std::string& path, Context& context,
            S& out) const override {
    if (entry == nullptr) {
      if (required_) {
        context.mistakes.add(section, path, "missing; expected " + Codec<T>::type(limits_));
      }
      return;
    }
    const Where inside = entry->value.implied ? Where{} : entry->where;
    const Slot slot{entry->value, path, context, limits_, inside, false};
    T value{};
    if (!Codec<T>::read(slot, value) || !passes(slot, value)) return;
    if (member_ != nullptr) out.*member_ = std::move(value);
  }

  std::string print(const S& section) const override {
    return Codec<T>::print(member_ != nullptr ? section.*member_ : default_value());
  }

  void describe(const std::string& prefix, std::vector<KeyInfo>& out) const override {
    std::string fallback = shown_default_;
    if (fallback.empty() && !required_) fallback = Codec<T>::print(default_value());
    out.push_back({prefix + this->name(), whole_type(), fallback, meaning_, support()});
  }

 private:
  T default_value() const {
    const bool works = supported_values_.empty() || supported_(fallback_);
    return works ? fallback_ : supported_values_.front();
  }

  // The type with the values that do not work yet.
  std::string whole_type() const {
    if constexpr (NamedEnum<T>) return Codec<T>::type(Limits{});
    return Codec<T>::type(limits_);
  }

  bool passes(const Slot& slot, const T& value) const {
    const std::string mistake = mistake_in_ ? mistake_in_(value) : "";
    if (!mistake.empty()) return slot.mistake(mistake);
    if (!supported_ || supported_(value)) return true;
    return slot.mistake("not supported yet: " + abbreviate(Codec<T>::print(value)) +
                        "; for now only " + supported_text_);
  }

  std::string support() const {
    if (!supported_) return "";
    if (missing_feature_) return "not supported yet";
    if constexpr (NamedEnum<T>) {
      std::vector<std::string> later;
      for (const auto& choice : choices(T{})) {
        if (!supported_(choice.value)) later.emplace_back(choice.name);
      }
      return "not supported yet: " + join(later);
    }
    return "for now only " + supported_text_ + "; anything else is not supported yet";
  }

  T S::*member_;
  T fallback_;
  bool required_;
  Limits limits_;
  std::function<std::string(const T&)> mistake_in_;
  std::string meaning_;
  std::string shown_default_;
  bool missing_feature_ = false;
  std::vector<T> supported_values_;
  std::function<bool(const T&)> supported_;
  std::string supported_text_;
};

/// What to say of a key that the section does not have.
std::string unknown_key(const std::string& key, const std::vector<std::string>& valid,
                        const std::vector<std::string>& known_keys);

/// Reports every key that the mapping has given before.
void report_duplicates(const Value& mapping, const std::string& path, Context& context);

/// "path.name", or "name" at the top.
std::string dotted(const std::string& path, const std::string& name);

template <class S>
class Table {
 public:
  template <class T>
  TypedKey<S, T>& key(const std::string& name, T S::*member, std::type_identity_t<T> fallback) {
    return add<T>(name, member, std::move(fallback), false);
  }
  template <class T>
  TypedKey<S, T>& required(const std::string& name, T S::*member) {
    return add<T>(name, member, T{}, true);
  }
  /// A key that is checked and not kept.
  template <class T>
  TypedKey<S, T>& unkept(const std::string& name, T fallback = {}) {
    return add<T>(name, nullptr, std::move(fallback), false);
  }
  template <class T>
  void section(const std::string& name, T S::*member, const Table<T>& table);

  const Key<S>& front() const { return *keys_.front(); }

  void set_defaults(S& out) const {
    for (const auto& key : keys_) key->set_default(out);
  }

  /// Reads a mapping; `section` is where missing keys are reported. Keys with mistakes keep their
  /// defaults.
  void read(const Value& value, Where section, const std::string& path, Context& context,
            S& out) const {
    set_defaults(out);
    if (value.kind == Value::Kind::broken) return;
    if (value.kind != Value::Kind::mapping) {
      context.mistakes.add(value.where, path, "expected " + type() + ", got " + shown(value));
      return;
    }
    report_strangers(value, path, context);
    for (const auto& key : keys_) {
      key->read(value.find(key->name()), section, dotted(path, key->name()), context, out);
    }
  }

  void read_missing(Where section, const std::string& path, Context& context, S& out) const {
    set_defaults(out);
    for (const auto& key : keys_) {
      key->read(nullptr, section, dotted(path, key->name()), context, out);
    }
  }

  std::string print_lines(const S& section) const {
    std::string text;
    for (const auto& key : keys_) text += key->print_lines(section);
    return text;
  }

  std::string print(const S& section) const {
    std::vector<std::string> texts;
    for (const auto& key : keys_) texts.push_back(key->name() + ": " + key->print(section));
    return "{" + join(texts) + "}";
  }

  std::string type() const { return "a mapping of " + join(names()); }
  std::string items() const { return "mappings of " + join(names()); }

  void describe(const std::string& prefix, std::vector<KeyInfo>& out) const {
    for (const auto& key : keys_) key->describe(prefix, out);
  }

  void values(const S& section, const std::string& prefix,
              std::vector<std::pair<std::string, std::string>>& out) const {
    for (const auto& key : keys_) key->values(section, prefix, out);
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& key : keys_) all.push_back(key->name());
    return all;
  }

  template <class T>
  TypedKey<S, T>& add(const std::string& name, T S::*member, T fallback, bool required) {
    auto key = std::make_unique<TypedKey<S, T>>(name, member, std::move(fallback), required);
    TypedKey<S, T>& added = *key;
    keys_.push_back(std::move(key));
    return added;
  }

  void report_strangers(const Value& mapping, const std::string& path, Context& context) const {
    const std::vector<std::string> valid = names();
    for (const Entry& entry : mapping.entries) {
      if (std::find(valid.begin(), valid.end(), entry.key) == valid.end()) {
        context.mistakes.add(entry.where, dotted(path, entry.key),
                             unknown_key(entry.key, valid, context.known_keys));
      }
    }
    report_duplicates(mapping, path, context);
  }

  std::vector<std::unique_ptr<Key<S>>> keys_;
};

/// A key whose value is a section with a table of its own.
template <class S, class T>
class SectionKey final : public Key<S> {
 public:
  SectionKey(std::string name, T S::*member, const Table<T>& table)
      : Key<S>(std::move(name)), member_(member), table_(table) {}

  void set_default(S& section) const override { table_.set_defaults(section.*member_); }

  void read(const Entry* entry, Where section, const std::string& path, Context& context,
            S& out) const override {
    if (entry == nullptr) {
      table_.read_missing(section, path, context, out.*member_);
    } else {
      const Where inside = entry->value.implied ? Where{} : entry->where;
      table_.read(entry->value, inside, path, context, out.*member_);
    }
  }

  std::string print(const S& section) const override { return table_.print(section.*member_); }

  std::string print_lines(const S& section) const override {
    std::string text = "\n" + this->name() + ":\n";
    std::string line;
    for (char c : table_.print_lines(section.*member_)) {
      line += c;
      if (c != '\n') continue;
      text += "  " + line;
      line.clear();
    }
    return text;
  }

  void describe(const std::string& prefix, std::vector<KeyInfo>& out) const override {
    table_.describe(prefix + this->name() + ".", out);
  }

  void values(const S& section, const std::string& prefix,
              std::vector<std::pair<std::string, std::string>>& out) const override {
    table_.values(section.*member_, prefix + this->name() + ".", out);
  }

 private:
  T S::*member_;
  const Table<T>& table_;
};

template <class S>
template <class T>
void Table<S>::section(const std::string& name, T S::*member, const Table<T>& table) {
  keys_.push_back(std::make_unique<SectionKey<S, T>>(name, member, table));
}

/// The table of a struct that is an element of a list or the value of a key; specialised in
/// schema.h.
template <class T>
const Table<T>& table_of();

template <class T>
inline constexpr bool kHasTable = false;

template <class T>
requires kHasTable<T>
struct Codec<T> {
  static bool read(const Slot& slot, T& out) {
    const std::size_t before = slot.context.mistakes.size();
    table_of<T>().read(slot.value, slot.section, slot.path, slot.context, out);
    return slot.context.mistakes.size() == before;
  }
  static std::string print(const T& value) { return table_of<T>().print(value); }
  static std::string type(const Limits&) { return table_of<T>().type(); }
  static std::string items(const Limits&) { return table_of<T>().items(); }
};

}  // namespace decent::config
