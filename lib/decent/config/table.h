#pragma once
// The table of a section's keys: one entry per key says how the key is read, checked, printed,
// documented and compared. Its default is the initial value of the member in recipe.h.
//
//   Table<OptimizerRecipe> table;
//   table.key("lr", &OptimizerRecipe::lr).range(above(0)).doc("Learning rate at its peak.");

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decent/config/codec.h"
#include "decent/config/keys.h"

namespace decent::config {

/// The names that are valid for a key, taken from Names: a pointer to a member, or a function.
using NameList = std::function<std::vector<std::string>(const Names&)>;

/// "path.name", or "name" at the top.
std::string dotted(const std::string& path, const std::string& name);

/// Keys with their values, each on one line.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// One key of the section struct S, or several whose values S keeps together.
template <class S>
class Key {
 public:
  virtual ~Key() = default;

  /// Reads the key from its section, `mapping`, which is nullptr if the section is not given. A
  /// required key that is not given is reported as missing at `section`. `path` is the section's.
  virtual void read(const Value* mapping, Where section, const std::string& path, Context& context,
                    S& out) const = 0;
  virtual void add_names(const Names& names, std::vector<std::string>& out) const = 0;
  virtual void describe(const std::string& prefix, const Names& names,
                        std::vector<KeyInfo>& out) const = 0;
  /// Appends every dotted key below `prefix` with its value.
  virtual void values(const S& section, const std::string& prefix, KeyValues& out) const = 0;
  /// Whole lines, "key: value".
  virtual std::string print_lines(const S& section) const {
    KeyValues all;
    values(section, "", all);
    std::string text;
    for (const auto& [name, value] : all) text += name + ": " + value + "\n";
    return text;
  }
};

/// A key with one name.
template <class S>
class NamedKey : public Key<S> {
 public:
  explicit NamedKey(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  void read(const Value* mapping, Where section, const std::string& path, Context& context,
            S& out) const final {
    const Entry* entry = mapping == nullptr ? nullptr : mapping->find(name_);
    read_entry(entry, section, dotted(path, name_), context, out);
  }
  void add_names(const Names&, std::vector<std::string>& out) const final { out.push_back(name_); }

 protected:
  /// `entry` is nullptr if the key is not given; `path` is the key's.
  virtual void read_entry(const Entry* entry, Where section, const std::string& path,
                          Context& context, S& out) const = 0;

 private:
  std::string name_;
};

/// A key whose value is a T, kept in an S.
template <class S, class T>
class TypedKey final : public NamedKey<S> {
 public:
  TypedKey(std::string name, T S::*member, bool required)
      : NamedKey<S>(std::move(name)), member_(member), required_(required) {}

  TypedKey& range(Interval interval) {
    limits_.range = interval;
    return *this;
  }
  TypedKey& one_of(NameList names) {
    valid_names_ = std::move(names);
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
  /// The default as the reference shows it, for a default that depends on other keys.
  TypedKey& shown_default(std::string text) {
    shown_default_ = std::move(text);
    return *this;
  }
  /// Workers of one run may have different values.
  TypedKey& may_differ() {
    may_differ_ = true;
    return *this;
  }
  TypedKey& on_resume(OnResume what) {
    on_resume_ = what;
    return *this;
  }
  /// See KeyInfo::shapes_exchange.
  TypedKey& shapes_exchange() {
    shapes_exchange_ = true;
    return *this;
  }
  /// See KeyInfo::changes_measure.
  TypedKey& changes_measure() {
    changes_measure_ = true;
    return *this;
  }

  /// See KeyInfo::of_averaging.
  TypedKey& of_averaging() {
    of_averaging_ = true;
    return *this;
  }

  void read_entry(const Entry* entry, Where section, const std::string& path, Context& context,
                  S& out) const override {
    const Limits limits = limits_among(context.names);
    if (entry == nullptr) {
      if (required_) {
        context.mistakes.add(section, path, "missing; expected " + Codec<T>::type(limits));
      }
      return;
    }
    const Where inside = entry->value.implied ? Where{} : entry->where;
    const Slot slot{entry->value, path, context, limits, inside, false};
    T value{};
    if (!Codec<T>::read(slot, value)) return;
    const std::string mistake = mistake_in_ ? mistake_in_(value) : "";
    if (mistake.empty()) {
      out.*member_ = std::move(value);
    } else {
      slot.mistake(mistake);
    }
  }

  void values(const S& section, const std::string& prefix, KeyValues& out) const override {
    out.emplace_back(prefix + this->name(), Codec<T>::print(section.*member_));
  }

  void describe(const std::string& prefix, const Names& names,
                std::vector<KeyInfo>& out) const override {
    std::string fallback = shown_default_;
    if (fallback.empty() && !required_) fallback = Codec<T>::print(S().*member_);
    out.push_back({.name = prefix + this->name(),
                   .type = Codec<T>::type(limits_among(names)),
                   .fallback = fallback,
                   .meaning = meaning_,
                   .may_differ = may_differ_,
                   .on_resume = on_resume_,
                   .shapes_exchange = shapes_exchange_,
                   .changes_measure = changes_measure_,
                   .of_averaging = of_averaging_});
  }

 private:
  Limits limits_among(const Names& names) const {
    Limits limits = limits_;
    if (valid_names_) limits.names = valid_names_(names);
    return limits;
  }

  T S::*member_;
  bool required_;
  Limits limits_;
  NameList valid_names_;
  std::function<std::string(const T&)> mistake_in_;
  std::string meaning_;
  std::string shown_default_;
  bool may_differ_ = false;
  OnResume on_resume_ = OnResume::tell;
  bool shapes_exchange_ = false;
  bool changes_measure_ = false;
  bool of_averaging_ = false;
};

/// The message for a key that the section does not have.
std::string unknown_key(const std::string& key, const std::vector<std::string>& valid,
                        const std::vector<std::string>& known_keys);

/// Reports every repetition of a key in the mapping.
void report_duplicates(const Value& mapping, const std::string& path, Context& context);

/// Advice for a text in place of a mapping of `names`, if the text begins with one of them and a
/// colon; else empty.
std::string advice_on_blank(const Value& value, const std::vector<std::string>& names);

/// Up to this many unknown keys of a mapping are reported with the nearest name, as the search for
/// it looks at all names.
inline constexpr std::size_t kMostUnknownKeys = 100;

template <class S>
class Table {
 public:
  template <class T>
  TypedKey<S, T>& key(const std::string& name, T S::*member) {
    return add(std::make_unique<TypedKey<S, T>>(name, member, false));
  }
  template <class T>
  TypedKey<S, T>& required(const std::string& name, T S::*member) {
    return add(std::make_unique<TypedKey<S, T>>(name, member, true));
  }
  void add_key(std::unique_ptr<Key<S>> key) { keys_.push_back(std::move(key)); }
  template <class T>
  void section(const std::string& name, T S::*member, const Table<T>& table);

  const Key<S>& front() const { return *keys_.front(); }

  /// Reads a mapping. Missing keys are reported at `section`; keys with mistakes keep their
  /// defaults.
  void read(const Value& value, Where section, const std::string& path, Context& context,
            S& out) const {
    out = S{};
    if (value.kind == Value::Kind::broken) return;
    if (value.kind != Value::Kind::mapping) {
      context.mistakes.add(value.where, path,
                           "expected " + type(context.names) + ", got " + shown(value) +
                               advice_on_blank(value, names(context.names)));
      return;
    }
    report_unknown_keys(value, path, context);
    for (const auto& key : keys_) {
      key->read(&value, section, path, context, out);
    }
  }

  void read_missing(Where section, const std::string& path, Context& context, S& out) const {
    out = S{};
    for (const auto& key : keys_) {
      key->read(nullptr, section, path, context, out);
    }
  }

  std::string print_lines(const S& section) const {
    std::string text;
    for (const auto& key : keys_) text += key->print_lines(section);
    return text;
  }

  std::string print(const S& section) const {
    KeyValues all;
    values(section, "", all);
    std::vector<std::string> texts;
    for (const auto& [name, value] : all) texts.push_back(name + ": " + value);
    return "{" + join(texts) + "}";
  }

  std::string type(const Names& among = {}) const { return "a mapping of " + join(names(among)); }
  std::string items() const { return "mappings of " + join(names()); }

  void describe(const std::string& prefix, const Names& names, std::vector<KeyInfo>& out) const {
    for (const auto& key : keys_) key->describe(prefix, names, out);
  }

  void values(const S& section, const std::string& prefix, KeyValues& out) const {
    for (const auto& key : keys_) key->values(section, prefix, out);
  }

  /// The names of the keys, of which some come from rows among the given ones.
  std::vector<std::string> names(const Names& among = {}) const {
    std::vector<std::string> all;
    for (const auto& key : keys_) key->add_names(among, all);
    return all;
  }

 private:
  template <class K>
  K& add(std::unique_ptr<K> key) {
    K& added = *key;
    keys_.push_back(std::move(key));
    return added;
  }

  void report_unknown_keys(const Value& mapping, const std::string& path, Context& context) const {
    const std::vector<std::string> valid = names(context.names);
    std::size_t unknown = 0;
    for (const Entry& entry : mapping.entries) {
      if (std::find(valid.begin(), valid.end(), entry.key) != valid.end()) continue;
      context.mistakes.add(entry.where, dotted(path, entry.key),
                           ++unknown > kMostUnknownKeys
                               ? "unknown key"
                               : unknown_key(entry.key, valid, context.known_keys));
    }
    report_duplicates(mapping, path, context);
  }

  std::vector<std::unique_ptr<Key<S>>> keys_;
};

/// A key whose value is a section with a table of its own.
template <class S, class T>
class SectionKey final : public NamedKey<S> {
 public:
  SectionKey(std::string name, T S::*member, const Table<T>& table)
      : NamedKey<S>(std::move(name)), member_(member), table_(table) {}

  void read_entry(const Entry* entry, Where section, const std::string& path, Context& context,
                  S& out) const override {
    if (entry == nullptr) {
      table_.read_missing(section, path, context, out.*member_);
    } else {
      const Where inside = entry->value.implied ? Where{} : entry->where;
      table_.read(entry->value, inside, path, context, out.*member_);
    }
  }

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

  void describe(const std::string& prefix, const Names& names,
                std::vector<KeyInfo>& out) const override {
    table_.describe(prefix + this->name() + ".", names, out);
  }

  void values(const S& section, const std::string& prefix, KeyValues& out) const override {
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

/// The table of a struct that is an element of a list or the value of a key. Specialised in
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
