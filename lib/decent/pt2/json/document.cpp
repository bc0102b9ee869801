#include "decent/pt2/json/document.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent::pt2 {

// The values of a list or an object follow it directly; `end` is the index of the next value after
// all of them.
struct JsonDocument::Value {
  const std::string* key = nullptr;  // in an object
  union {
    std::int64_t integer;
    double real;
    const std::string* text;
    std::uint64_t count;  // of a list or an object
  };
  std::uint32_t end = 0;
  Json::Kind kind = Json::Kind::null;
  bool boolean = false;
};

struct JsonDocument::Content {
  std::vector<Value> values;
  std::set<std::string> keys;
  std::deque<std::string> texts;
};

// Receives the events of nlohmann's parser, in the order of the text.
class JsonDocument::Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::size_t bytes, const std::string& what, Content& content)
      : most_values_(
            std::min(kMaxJsonValues, kMaxValuesOfSmallJson + bytes / kMinBytesPerJsonValue)),
        what_(what),
        content_(content) {}

  bool null() override {
    add(Json::Kind::null);
    return true;
  }
  bool boolean(bool value) override {
    add(Json::Kind::boolean).boolean = value;
    return true;
  }
  bool number_integer(std::int64_t value) override {
    add(Json::Kind::integer).integer = value;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (value <= std::numeric_limits<std::int64_t>::max()) {
      return number_integer(static_cast<std::int64_t>(value));
    }
    return number_float(static_cast<double>(value), {});  // too large for any integer here
  }
  bool number_float(double value, const std::string&) override {
    add(Json::Kind::real).real = value;
    return true;
  }
  bool string(std::string& value) override {
    add(Json::Kind::text).text = &content_.texts.emplace_back(std::move(value));
    return true;
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // does not occur in texts
  bool start_object(std::size_t) override { return open(Json::Kind::object); }
  bool start_array(std::size_t) override { return open(Json::Kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    key_ = &*content_.keys.insert(std::move(name)).first;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    throw UserError(what_ + ": is no JSON from byte " + std::to_string(position) + " on");
  }

 private:
  Value& add(Json::Kind kind) {
    if (content_.values.size() >= most_values_) {
      throw UserError(what_ + ": has more than " + std::to_string(most_values_) +
                      " values, the most that are read of a text of its size");
    }
    if (!open_.empty()) ++content_.values[open_.back()].count;
    Value& value = content_.values.emplace_back();
    value.kind = kind;
    value.key = std::exchange(key_, nullptr);
    value.count = 0;
    value.end = static_cast<std::uint32_t>(content_.values.size());
    return value;
  }

  bool open(Json::Kind kind) {
    if (open_.size() >= kMaxJsonDepth) {
      throw UserError(what_ + ": is nested deeper than " + std::to_string(kMaxJsonDepth) +
                      " lists and objects");
    }
    add(kind);
    open_.push_back(content_.values.size() - 1);
    return true;
  }

  bool close() {
    content_.values[open_.back()].end = static_cast<std::uint32_t>(content_.values.size());
    open_.pop_back();
    return true;
  }

  const std::size_t most_values_;
  const std::string& what_;
  Content& content_;
  const std::string* key_ = nullptr;  // of the next value
  std::vector<std::size_t> open_;     // lists and objects that have not ended
};

JsonDocument::JsonDocument(std::string_view text, std::string what)
    : what_(std::move(what)), content_(std::make_unique<Content>()) {
  Builder builder(text.size(), what_, *content_);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
}

JsonDocument::~JsonDocument() = default;

const JsonDocument::Value& JsonDocument::value(std::uint32_t index) const {
  return content_->values[index];
}

// "graph_module.graph.nodes[3].inputs": the way down to the value, of bounded length.
std::string JsonDocument::place_of(std::uint32_t index) const {
  constexpr std::size_t kMostSteps = 8;
  std::vector<std::string> steps;
  std::uint32_t at = 0;
  while (at != index) {
    const bool is_list = value(at).kind == Json::Kind::list;
    std::size_t position = 0;
    std::uint32_t child = at + 1;
    for (; value(child).end <= index; child = value(child).end) ++position;
    if (is_list) {
      steps.push_back("[" + std::to_string(position) + "]");
    } else {
      const std::string key = in_quotes(*value(child).key);  // on one line
      steps.push_back((steps.empty() ? "" : ".") + key.substr(1, key.size() - 2));
    }
    at = child;
  }
  std::string place;
  const std::size_t left_out = steps.size() > kMostSteps ? steps.size() - kMostSteps : 0;
  for (std::size_t i = left_out; i < steps.size(); ++i) place += steps[i];
  return (left_out > 0 ? ".." : "") + place;
}

// ---- Json ----

namespace {

std::string text_of(Json value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return value.boolean() ? "true" : "false";
    case Json::Kind::integer:
      return std::to_string(value.integer());
    case Json::Kind::real:
      return "a real number";
    case Json::Kind::text:
      return "the text " + in_quotes(value.text());
    case Json::Kind::list:
      return "a list";
    case Json::Kind::object:
      return "an object";
  }
  __builtin_unreachable();
}

}  // namespace

Json::Kind Json::kind() const { return document_->value(index_).kind; }

void Json::fail(const std::string& reason) const {
  const std::string place = document_->place_of(index_);
  throw UserError(document_->what_ + ": " + (place.empty() ? "it" : place) + " " + reason);
}

void Json::fail_kind(const char* expected) const {
  fail("is " + text_of(*this) + ", not " + expected);
}

bool Json::boolean() const {
  if (kind() != Kind::boolean) fail_kind("true or false");
  return document_->value(index_).boolean;
}

std::int64_t Json::integer() const {
  if (kind() != Kind::integer) fail_kind("an integer");
  return document_->value(index_).integer;
}

double Json::real() const {
  if (kind() == Kind::integer) return static_cast<double>(integer());
  if (kind() == Kind::text) {
    const std::string& name = text();
    if (name == "Infinity") return std::numeric_limits<double>::infinity();
    if (name == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  if (kind() != Kind::real) fail_kind("a number");
  return document_->value(index_).real;
}

const std::string& Json::text() const {
  if (kind() != Kind::text) fail_kind("a text");
  return *document_->value(index_).text;
}

JsonValues Json::values() const {
  return {Json(*document_, index_ + 1), Json(*document_, document_->value(index_).end)};
}

JsonValues Json::list() const {
  if (kind() != Kind::list) fail_kind("a list");
  return values();
}

JsonValues Json::object() const {
  if (kind() != Kind::object) fail_kind("an object");
  return values();
}

std::size_t Json::size() const {
  if (kind() != Kind::list && kind() != Kind::object) fail_kind("a list or an object");
  return document_->value(index_).count;
}

const std::string& Json::key() const { return *document_->value(index_).key; }

std::optional<Json> Json::find(std::string_view key) const {
  for (const Json value : object()) {
    if (value.key() == key) return value.is_null() ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

Json Json::at(std::string_view key) const {
  if (const auto found = find(key)) return *found;
  fail("has no " + in_quotes(key));
}

Json Json::alternative() const {
  const JsonValues all = object();
  if (size() != 1) fail("has " + std::to_string(size()) + " alternatives, not one");
  return *all.begin();
}

JsonValues::Iterator& JsonValues::Iterator::operator++() {
  value_ = Json(*value_.document_, value_.document_->value(value_.index_).end);
  return *this;
}

}  // namespace decent::pt2
