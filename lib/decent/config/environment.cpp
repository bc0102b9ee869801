#include "decent/config/environment.h"

#include <algorithm>

#include "decent/config/scalars.h"
#include "decent/core/text.h"

namespace decent {

namespace config {
namespace {

struct Expansion {
  std::string text;
  std::string mistake;  // empty: none
};

// Whether YAML reads this text, unquoted, as null.
bool is_null_text(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

// `inside`: the text between the braces.
Expansion expand_variable(const std::string& inside, const Variables& environment) {
  const std::size_t dash = inside.find(":-");
  const std::string name = inside.substr(0, dash);
  if (!is_variable_name(name)) {
    return {"", "malformed variable '${" + abbreviate(inside) +
                    "}'; write ${NAME} or ${NAME:-default}, or $${ for a literal ${"};
  }
  const auto value = environment(name);
  if (dash != std::string::npos && value.value_or("").empty()) return {inside.substr(dash + 2), ""};
  if (!value) {
    return {"", "environment variable " + abbreviate(name) + " is not set; ${" + abbreviate(name) +
                    ":-default} gives a default"};
  }
  if (!is_utf8(*value)) {
    return {"", "environment variable " + abbreviate(name) + " is not valid UTF-8"};
  }
  return {*value, ""};
}

// A variable may be large, and a recipe may use it often: the result has at most `most` bytes.
Expansion expand(const std::string& text, const Variables& environment, std::size_t most) {
  Expansion result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 3, "$${") == 0) {
      result.text += "${";
      at += 3;
    } else if (text.compare(at, 2, "${") == 0) {
      const std::size_t close = text.find('}', at);
      if (close == std::string::npos) {
        return {"", "'${' without '}' in '" + abbreviate(text) + "'; $${ is a literal ${"};
      }
      Expansion part = expand_variable(text.substr(at + 2, close - at - 2), environment);
      if (!part.mistake.empty()) return part;
      if (result.text.size() + part.text.size() > most) {
        return {"", "environment variables make the recipe larger than 16 MiB"};
      }
      result.text += part.text;
      at = close + 1;
    } else {
      result.text += text[at++];
    }
  }
  return result;
}

class Expander {
 public:
  Expander(const Variables& environment, Mistakes& mistakes)
      : environment_(environment), mistakes_(mistakes) {}

  void walk(Value& value, const std::string& path) {
    if (value.kind == Value::Kind::scalar) expand_scalar(value, path);
    for (Value& item : value.items) walk(item, path);
    for (Entry& entry : value.entries) {
      walk(entry.value, path.empty() ? entry.key : path + "." + entry.key);
    }
  }

 private:
  void expand_scalar(Value& value, const std::string& path) {
    if (value.text.find("${") == std::string::npos) return;
    Expansion expansion = expand(value.text, environment_, most_);
    if (!expansion.mistake.empty()) {
      mistakes_.add(value.where, path, expansion.mistake);
      value.kind = Value::Kind::broken;
      return;
    }
    most_ -= std::min(most_, expansion.text.size());
    value.text = std::move(expansion.text);
    if (!value.quoted && is_null_text(value.text)) value.kind = Value::Kind::null;
  }

  const Variables& environment_;
  Mistakes& mistakes_;
  std::size_t most_ = kMaxExpandedBytes;  // the bytes that are left
};

}  // namespace

void expand_environment(Value& root, const Variables& environment, Mistakes& mistakes,
                        const std::string& path) {
  Expander(environment, mistakes).walk(root, path);
}

}  // namespace config
}  // namespace decent
