#include "decent/config/codec.h"

#include <algorithm>
#include <cctype>

#include "decent/core/text.h"

namespace decent::config {

bool Slot::mistake(const std::string& text) const {
  if (value.kind != Value::Kind::broken) context.mistakes.add(value.where, path, text);
  return false;
}

bool Slot::expected(const std::string& what) const {
  return mistake("expected " + what + (nullable ? " or null" : "") + ", got " + shown(value));
}

std::string name_type(const std::vector<std::string>& names) {
  if (names.empty()) return "a text";
  if (names.size() == 1) return names.front();
  std::vector<std::string> shown;  // punctuation is quoted, to stand out in the list
  for (const std::string& name : names)
    shown.push_back(name.size() == 1 && std::ispunct(static_cast<unsigned char>(name[0])) != 0
                        ? '"' + name + '"'
                        : name);
  return "one of " + join(shown);
}

bool read_name(const Slot& slot, const std::vector<std::string>& names, std::string& out) {
  const auto text = to_text(slot.value);
  const bool valid =
      text && (names.empty() || std::any_of(names.begin(), names.end(), [&](const auto& name) {
                 return name == *text || number_in(name, *text);
               }));
  if (!valid) {
    return slot.mistake("expected " + name_type(names) + (slot.nullable ? " or null" : "") +
                        ", got " + shown(slot.value) + (text ? suggestion(*text, names) : ""));
  }
  out = *text;
  return true;
}

bool resolve_path(const Slot& slot, const std::string& text, std::filesystem::path& out) {
  std::filesystem::path path = text;
  if (const auto folder = slot.context.mistakes.folder_of(slot.value.where.origin))
    path = *folder / path;
  if (path.is_relative()) {
    std::error_code error;
    path = std::filesystem::current_path(error) / path;
    if (error) return slot.mistake("the working folder cannot be read: " + error.message());
  }
  path = path.lexically_normal();
  // The printed recipe must name the same file, and is YAML, so UTF-8.
  if (!is_utf8(path.string())) return slot.mistake("the path is not valid UTF-8");
  out = std::move(path);
  return true;
}

bool Codec<std::int64_t>::read(const Slot& slot, std::int64_t& out) {
  const auto number = to_integer(slot.value);
  if (!number || !slot.limits.range.contains(static_cast<double>(*number))) {
    return slot.expected(type(slot.limits));
  }
  out = *number;
  return true;
}

bool Codec<double>::read(const Slot& slot, double& out) {
  const auto number = to_number(slot.value);
  if (!number || !slot.limits.range.contains(*number)) return slot.expected(type(slot.limits));
  out = *number;
  return true;
}

bool Codec<bool>::read(const Slot& slot, bool& out) {
  const auto value = to_bool(slot.value);
  if (!value) return slot.expected(type(slot.limits));
  out = *value;
  return true;
}

bool Codec<std::filesystem::path>::read(const Slot& slot, std::filesystem::path& out) {
  const auto text = to_text(slot.value);
  if (!text) return slot.expected(type(slot.limits));
  if (!slot.limits.path_as_given) return resolve_path(slot, *text, out);
  out = *text;
  return true;
}

}  // namespace decent::config
