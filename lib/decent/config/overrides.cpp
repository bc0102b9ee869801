#include "decent/config/overrides.h"

#include <algorithm>

#include "decent/config/scalars.h"

namespace decent::config {
namespace {

class OverrideMistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::vector<std::string> split_key(const std::string& key) {
  std::vector<std::string> parts(1);
  for (char c : key) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const bool hole =
      std::any_of(parts.begin(), parts.end(), [](auto& part) { return part.empty(); });
  if (hole) throw OverrideMistake("a part of the key is empty; expected section.key=VALUE");
  if (parts.size() > kMaxDepth) throw OverrideMistake("no key has this many parts");
  return parts;
}

// The mapping at the key `part` of the mapping `parent`; made if there is none.
Value& enter(Value& parent, const std::string& part, const std::string& path, Where where) {
  Entry* entry = parent.find(part);
  if (entry == nullptr) {
    parent.entries.push_back({part, where, Value{}});
    entry = &parent.entries.back();
  }
  Value& value = entry->value;
  if (value.kind == Value::Kind::null) {
    value.kind = Value::Kind::mapping;
    value.implied = true;
    value.where = where;
  }
  if (value.kind != Value::Kind::mapping) {
    throw OverrideMistake(abbreviate(path) + " is " + shown(value) + ", which has no keys");
  }
  return value;
}

void apply(Value& root, const std::string& text, int origin) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw OverrideMistake("no '='; expected section.key=VALUE");
  const std::vector<std::string> parts = split_key(text.substr(0, equals));
  Value value = parse_document(text.substr(equals + 1), origin);

  const Where where{origin, 1, 1};
  Value* parent = &root;
  std::string path;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    path += (i > 0 ? "." : "") + parts[i];
    parent = &enter(*parent, parts[i], path, where);
  }
  if (Entry* entry = parent->find(parts.back())) {
    entry->where = where;
    entry->value = std::move(value);
  } else {
    parent->entries.push_back({parts.back(), where, std::move(value)});
  }
}

}  // namespace

void apply_overrides(Value& root, std::span<const std::string> overrides, Mistakes& mistakes) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const int origin = static_cast<int>(i) + 1;
    try {
      apply(root, overrides[i], origin);
    } catch (const OverrideMistake& mistake) {
      mistakes.add({origin, 1, 1}, "", mistake.what());
    } catch (const SyntaxMistake& mistake) {
      mistakes.add({origin, 1, 1}, "", mistake.what());
    }
  }
}

}  // namespace decent::config
