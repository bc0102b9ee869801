#include "decent/core/script_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "decent/core/text.h"

namespace decent {
namespace {

// Words that cannot name a variable, or that the translation uses itself.
constexpr std::array kTaken = {"False",
                               "None",
                               "True",
                               "and",
                               "as",
                               "assert",
                               "async",
                               "await",
                               "break",
                               "class",
                               "continue",
                               "def",
                               "del",
                               "elif",
                               "else",
                               "except",
                               "finally",
                               "for",
                               "from",
                               "global",
                               "if",
                               "import",
                               "in",
                               "is",
                               "lambda",
                               "nonlocal",
                               "not",
                               "or",
                               "pass",
                               "raise",
                               "return",
                               "try",
                               "while",
                               "with",
                               "yield",
                               "self",
                               "torch",
                               "device",
                               "int",
                               "float",
                               "bool",
                               "str",
                               "len",
                               "range",
                               "list",
                               "List",
                               "Dict",
                               "Tuple",
                               "Optional",
                               "Tensor",
                               "getattr",
                               "hasattr",
                               "isinstance",
                               "print",
                               "min",
                               "max",
                               "abs",
                               "sum",
                               "round",
                               "forward",
                               "training",
                               "math",
                               "zip",
                               "enumerate",
                               "sorted",
                               "annotate",
                               "tuple",
                               "dict",
                               "type",
                               "CONSTANTS",
                               "ops",
                               "inf",
                               "nan",
                               "any",
                               "all",
                               "pow",
                               "divmod",
                               "hash",
                               "ord",
                               "chr",
                               "hex",
                               "oct",
                               "bin",
                               "id",
                               "super",
                               "uninitialized",
                               "unchecked_cast"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); }))
    return false;
  return std::find(kTaken.begin(), kTaken.end(), text) == kTaken.end();
}

std::string cleaned(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (is_letter(c) || is_digit(c)) {
      text.push_back(c);
    } else if (!text.empty() && text.back() != '_') {
      text.push_back('_');
    }
  }
  if (text.empty()) return "value";
  return is_digit(text.front()) ? "v" + text : text;
}

}  // namespace

std::string Identifiers::make(std::string_view name) {
  const std::string base = cleaned(name);
  std::string text = is_identifier(base) ? base : base + "_";
  // Thousands of names may differ only in characters that cleaned() removes.
  int& number = next_.try_emplace(base, 1).first->second;
  while (taken_.count(text) != 0) text = base + "_" + std::to_string(number++);
  taken_.insert(text);
  return text;
}

// `keeps`: which characters, other than ".", stay.
template <typename Keeps>
std::string path_of(std::string_view name, Keeps keeps) {
  std::string path;
  for (const char c : name) {
    if (c != '.' && keeps(c)) {
      path.push_back(c);
    } else if (c == '.') {
      if (path.empty() || path.back() == '.') path.push_back('_');
      path.push_back('.');
    } else if (!path.empty() && path.back() != '_') {
      path.push_back('_');
    }
  }
  if (path.empty() || path.back() == '.') path.push_back('_');
  return path;
}

std::string module_path(std::string_view name) {
  return path_of(name, [](char c) { return is_letter(c) || is_digit(c); });
}

std::string printable_path(std::string_view name) {
  return path_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

std::string attribute_expression(std::string_view path) {
  std::string expression = "self";
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string step(path.substr(0, dot));
    expression = is_identifier(step) ? expression + "." + step
                                     : "getattr(" + expression + ", \"" + step + "\")";
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return expression;
}

std::string literal(double value) {
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string string_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result.push_back('\\');
    if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      result.push_back(c);
    }
  }
  return result + "\"";
}

std::string list_text(const std::vector<std::string>& elements, std::string_view element_type) {
  if (elements.empty()) return "annotate(List[" + std::string(element_type) + "], [])";
  return "[" + join(elements) + "]";
}

}  // namespace decent
