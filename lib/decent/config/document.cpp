#include "decent/config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace decent::config {
namespace {

// Far more than any recipe needs; bounds what a hostile text can cost.
constexpr std::size_t kMaxDocumentBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxNodes = 200'000;

// The size of a value with its aliases replaced.
struct Extent {
  std::size_t nodes = 0;
  std::size_t bytes = 0;  // of its texts and keys

  Extent& operator+=(const Extent& other) {
    nodes += other.nodes;
    bytes += other.bytes;
    return *this;
  }
};

Extent extent_of(const Value& value) {
  Extent extent{.nodes = 1, .bytes = value.text.size()};
  for (const Value& item : value.items) extent += extent_of(item);
  for (const Entry& entry : value.entries) {
    extent.bytes += entry.key.size();
    extent += extent_of(entry.value);
  }
  return extent;
}

std::size_t depth_of(const Value& value) {
  std::size_t below = 0;
  for (const Value& item : value.items) below = std::max(below, depth_of(item));
  for (const Entry& entry : value.entries) below = std::max(below, depth_of(entry.value));
  const bool nests = value.kind == Value::Kind::list || value.kind == Value::Kind::mapping;
  return below + (nests ? 1 : 0);
}

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(int origin) : origin_(origin) {}

  Value take() { return std::move(root_); }
  Where root_where() const { return root_.where; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Value value;
    value.where = at(mark);
    complete(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw SyntaxMistake(at(mark), "an alias that contains itself");
    if (open_.size() + depth_of(found->second) > kMaxDepth) throw too_deep(at(mark));
    spend(extent_of(found->second), at(mark));
    complete(found->second, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value;
    value.kind = Value::Kind::scalar;
    value.where = at(mark);
    value.text = text;
    value.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!value.quoted) refuse_tag(tag, value.where);
    complete(std::move(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(Value::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(Value::Kind::mapping, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  // A list or mapping that has not ended yet.
  struct Open {
    Value value;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;  // mapping: the key is read, its value is next
    std::string key;
    Where key_where;
  };

  Where at(const YAML::Mark& mark) const { return {origin_, mark.line + 1, mark.column + 1}; }

  static SyntaxMistake too_deep(Where where) {
    return {where, "nested deeper than " + std::to_string(kMaxDepth) + " levels"};
  }

  static void refuse_tag(const std::string& tag, Where where) {
    if (tag.empty() || tag == "?") return;
    throw SyntaxMistake(where, "the YAML tag " + abbreviate(tag) + " is not used in recipes");
  }

  void spend(Extent extent, Where where) {
    spent_ += extent;
    if (spent_.nodes > kMaxNodes) {
      throw SyntaxMistake(where, "more than " + std::to_string(kMaxNodes) + " values");
    }
    if (spent_.bytes > kMaxExpandedBytes) {
      throw SyntaxMistake(where, "aliases make the recipe larger than 16 MiB");
    }
  }

  void begin(Value::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    Open open;
    open.value.kind = kind;
    open.value.where = at(mark);
    open.anchor = anchor;
    refuse_tag(tag, open.value.where);
    if (open_.size() >= kMaxDepth) throw too_deep(open.value.where);
    open_.push_back(std::move(open));
  }

  void end() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    complete(std::move(closed.value), closed.anchor);
  }

  void complete(Value value, YAML::anchor_t anchor) {
    spend({.nodes = 1, .bytes = value.text.size()}, value.where);
    if (anchor != YAML::NullAnchor) {
      spend(extent_of(value), value.where);
      anchors_[anchor] = value;
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.kind == Value::Kind::list) {
      open_.back().value.items.push_back(std::move(value));
    } else {
      add_to_mapping(open_.back(), std::move(value));
    }
  }

  static void add_to_mapping(Open& open, Value value) {
    if (!open.has_key) {
      if (value.kind != Value::Kind::scalar && value.kind != Value::Kind::null) {
        throw SyntaxMistake(value.where, "a key must be a name, not a list or a mapping");
      }
      if (value.text == "<<" && !value.quoted) {
        throw SyntaxMistake(value.where,
                            "YAML's merge key << is not used in recipes; write the keys out, or "
                            "an alias in place of the whole mapping (model: *name)");
      }
      open.key = value.kind == Value::Kind::null ? "null" : value.text;
      open.key_where = value.where;
      open.has_key = true;
      return;
    }
    // For a value that is left out, the parser gives the position of the next token.
    const bool left_out = value.kind == Value::Kind::null && value.where.line > open.key_where.line;
    if (left_out) value.where = open.key_where;
    open.value.entries.push_back({std::move(open.key), open.key_where, std::move(value)});
    open.has_key = false;
  }

  int origin_;
  Value root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchors_;
  Extent spent_;
};

Value parse_stream(const std::string& text, int origin) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Builder builder(origin);
  if (!parser.HandleNextDocument(builder)) {
    Value nothing;
    nothing.where = {origin, 1, 1};
    return nothing;
  }
  Builder second(origin);
  if (parser.HandleNextDocument(second)) {
    throw SyntaxMistake(second.root_where(),
                        "more text after the end of the YAML document (a recipe is one document)");
  }
  return builder.take();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Characters that look like a space but are none in YAML, in UTF-8.
struct OtherSpace {
  std::string_view bytes;
  const char* name;
};
constexpr OtherSpace kOtherSpaces[] = {{"\t", "a tab"},
                                       {"\xc2\xa0", "a non-breaking space (U+00A0)"},
                                       {"\xe2\x80\x83", "an em space (U+2003)"},
                                       {"\xe2\x80\x82", "an en space (U+2002)"},
                                       {"\xe2\x80\x89", "a thin space (U+2009)"},
                                       {"\xe2\x80\xaf", "a narrow non-breaking space (U+202F)"},
                                       {"\xe2\x80\x8b", "a zero-width space (U+200B)"},
                                       {"\xe3\x80\x80", "an ideographic space (U+3000)"}};

// A mistake for the first such character that indents a line. A tab counts only in the line
// `tabs_in`, as it is allowed elsewhere.
std::optional<SyntaxMistake> other_indentation(const std::vector<std::string>& lines, int origin,
                                               std::optional<int> tabs_in) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t begin = lines[i].find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    const std::string_view rest = std::string_view(lines[i]).substr(begin);
    for (const OtherSpace& space : kOtherSpaces) {
      const bool counts = space.bytes != "\t" || tabs_in == static_cast<int>(i) + 1;
      if (!counts || !rest.starts_with(space.bytes)) continue;
      return SyntaxMistake({origin, static_cast<int>(i) + 1, static_cast<int>(begin) + 1},
                           std::string("not valid YAML: ") + space.name +
                               " indents this line; YAML indents with spaces only");
    }
  }
  return std::nullopt;
}

// A mistake for the first such character, other than a tab, outside of quotes and comments: it
// looks like a separator of words, but is part of a word.
std::optional<SyntaxMistake> other_separation(const std::vector<std::string>& lines, int origin) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    char quote = '\0';
    const std::string_view line = lines[i];
    for (std::size_t at = 0; at < line.size(); ++at) {
      const char c = line[at];
      if (quote == '\0' && c == '#') break;
      if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      }
      for (const OtherSpace& space : kOtherSpaces) {
        if (quote != '\0' || c == '\t' || !line.substr(at).starts_with(space.bytes)) continue;
        return SyntaxMistake({origin, static_cast<int>(i) + 1, static_cast<int>(at) + 1},
                             std::string("not valid YAML: ") + space.name +
                                 " stands here; YAML separates with ordinary spaces only");
      }
    }
  }
  return std::nullopt;
}

// A mistake for a key whose value follows the colon without a blank, which YAML takes for one word:
// in the line where the parser got stuck, or in the nearest such line above it.
std::optional<SyntaxMistake> glued_value(const std::vector<std::string>& lines, Where where) {
  for (int line = std::min(where.line, static_cast<int>(lines.size())); line > 0; --line) {
    const std::string& text = lines[static_cast<std::size_t>(line) - 1];
    const std::size_t begin = text.find_first_not_of(" -");
    const std::size_t colon = text.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.", begin);
    if (begin == std::string::npos || colon == std::string::npos || colon == begin) continue;
    const bool is_glued = text[colon] == ':' && colon + 1 < text.size() &&
                          std::string_view(" /\\").find(text[colon + 1]) == std::string_view::npos;
    if (is_glued)
      return SyntaxMistake({where.origin, line, static_cast<int>(begin) + 1},
                           "not valid YAML: a blank is missing after '" +
                               abbreviate(text.substr(begin, colon - begin + 1)) + "'");
  }
  return std::nullopt;
}

// The parser's message only fits the place where it gets stuck, so likely causes are tried first.
SyntaxMistake not_yaml(const YAML::Exception& error, const std::string& text, int origin) {
  const bool known = !error.mark.is_null();
  const Where where =
      known ? Where{origin, error.mark.line + 1, error.mark.column + 1} : Where{origin, 1, 1};
  const std::vector<std::string> lines = lines_of(text);
  if (const auto mistake = other_indentation(lines, origin, where.line)) return *mistake;
  if (const auto mistake = glued_value(lines, where)) return *mistake;
  const bool is_escape = error.msg.find("escape character") != std::string::npos ||
                         error.msg.find("hex number") != std::string::npos;
  return {where, "not valid YAML: " + abbreviate(error.msg, 200) +
                     (is_escape ? "; in double quotes a backslash begins an escape, in single "
                                  "quotes it is a character"
                                : "")};
}

template <class Entries>
auto* find_entry(Entries& entries, std::string_view key) {
  for (auto& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return static_cast<decltype(&entries.front())>(nullptr);
}

}  // namespace

const Entry* Value::find(std::string_view key) const { return find_entry(entries, key); }
Entry* Value::find(std::string_view key) { return find_entry(entries, key); }

Value parse_document(const std::string& text, int origin) {
  if (text.size() > kMaxDocumentBytes) {
    throw SyntaxMistake({origin, 1, 1}, "larger than 1 MiB, so not a recipe");
  }
  const std::vector<std::string> lines = lines_of(text);
  if (const auto mistake = other_indentation(lines, origin, std::nullopt)) throw *mistake;
  if (const auto mistake = other_separation(lines, origin)) throw *mistake;
  try {
    return parse_stream(text, origin);
  } catch (const YAML::Exception& error) {
    throw not_yaml(error, text, origin);
  }
}

}  // namespace decent::config
