#include "decent/config/scalars.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace decent::config {
namespace {

bool is_plain(const Value& value) { return value.kind == Value::Kind::scalar && !value.quoted; }

// std::from_chars takes no '+'.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

template <class T>
std::optional<T> whole(std::string_view text) {
  text = without_plus(text);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> parse_number(std::string_view text) {
  // from_chars would also take inf and nan.
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  return whole<double>(text);
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '/' || c == '.' || c == '-';
}

// Whether every YAML reader reads the unquoted text as this text, not as a number or a bool.
bool is_safe_plain(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kOther = {
      "null", "true", "false", "yes", "no", "on", "off", "...", ".inf", ".nan"};
  if (text.empty() || text.size() > 200 || text.front() == '-') return false;
  if (!std::all_of(text.begin(), text.end(), is_word_character)) return false;
  const char first = text.front() == '.' && text.size() > 1 ? text[1] : text.front();
  if (first >= '0' && first <= '9') return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kOther.begin(), kOther.end(), lower) == kOther.end();
}

std::string escape(unsigned code, const char* format) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, code);
  return buffer.data();
}

// The escape of the character that starts at `at`, and the character's length in bytes. The escape
// is empty if the character needs none.
std::pair<std::string, std::size_t> escaped(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte == '"' || byte == '\\') return {std::string("\\") + text[at], 1};
  if (byte == '\n') return {"\\n", 1};
  if (byte == '\t') return {"\\t", 1};
  if (byte < 0x20 || byte == 0x7F) return {escape(byte, "\\x%02X"), 1};
  // Line breaks and marks that YAML readers fold or drop: U+0080..U+009F, U+2028, U+2029, U+FEFF.
  const std::string_view rest = text.substr(at);
  if (byte == 0xC2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xA0) {
    return {escape(static_cast<unsigned char>(rest[1]), "\\u%04X"), 2};
  }
  if (rest.starts_with("\xE2\x80\xA8")) return {"\\u2028", 3};
  if (rest.starts_with("\xE2\x80\xA9")) return {"\\u2029", 3};
  if (rest.starts_with("\xEF\xBB\xBF")) return {"\\uFEFF", 3};
  return {"", 1};
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const auto [sequence, length] = escaped(text, at);
    quoted += sequence.empty() ? std::string(1, text[at]) : sequence;
    at += length;
  }
  return quoted + "\"";
}

std::string shown_items(const std::vector<Value>& items) {
  std::string text = "[";
  for (const Value& item : items) {
    if (text.size() > 60) return text + ", ..]";
    text += (text.size() > 1 ? ", " : "") + (item.kind == Value::Kind::scalar && !item.quoted
                                                 ? abbreviate(item.text, 30)
                                                 : shown(item));
  }
  return text + "]";
}

}  // namespace

std::optional<std::int64_t> to_integer(const Value& value) {
  return is_plain(value) ? whole<std::int64_t>(value.text) : std::nullopt;
}

std::optional<double> to_number(const Value& value) {
  return is_plain(value) ? parse_number(value.text) : std::nullopt;
}

std::optional<bool> to_bool(const Value& value) {
  return is_plain(value) ? parse_bool(value.text) : std::nullopt;
}

std::optional<std::string> to_text(const Value& value) {
  if (value.kind != Value::Kind::scalar || value.text.empty()) return std::nullopt;
  if (value.text.find('\0') != std::string::npos) return std::nullopt;
  return value.text;
}

std::string key_text(std::string_view text) {
  return is_safe_plain(text) ? std::string(text) : in_quotes(text);
}

std::string scalar_text(std::string_view text) {
  std::string literal;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("${")) literal += '$';
    literal += text[at];
  }
  return key_text(literal);
}

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return value.quoted ? "\"" + abbreviate(value.text) + "\" (text)"
                          : "'" + abbreviate(value.text) + "'";
    case Value::Kind::list:
      return shown_items(value.items);
    case Value::Kind::mapping:
      return "a mapping";
    case Value::Kind::broken:
      break;
  }
  return "a broken value";
}

}  // namespace decent::config
