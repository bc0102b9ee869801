#pragma once
// A YAML document as a plain tree that keeps positions, quoting and duplicate keys (yaml-cpp's own
// nodes keep none of the three reliably). Texts come from users, so size, depth and aliases are
// bounded.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decent/config/mistakes.h"

namespace decent::config {

struct Entry;

struct Value {
  enum class Kind {
    null,
    scalar,
    list,
    mapping,
    broken,  // a mistake that has been reported: readers leave it alone
  };
  Kind kind = Kind::null;
  std::string text;      // scalar
  bool quoted = false;   // scalar: '..', "..", block or !!str, so never a number or a bool
  bool implied = false;  // mapping: made by the path of a --set, not written by the user
  Where where;
  std::vector<Value> items;    // list
  std::vector<Entry> entries;  // mapping, in the order of the text, duplicates included

  /// The first entry with this key, or nullptr.
  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
};

struct Entry {
  std::string key;
  Where where;  // of the key
  Value value;
};

/// The text is not a YAML document as recipes may use it.
class SyntaxMistake : public std::runtime_error {
 public:
  SyntaxMistake(Where at, const std::string& message) : std::runtime_error(message), where(at) {}
  Where where;
};

/// Mappings and lists may be nested this deep.
inline constexpr std::size_t kMaxDepth = 64;

/// The most bytes in all texts and keys of a recipe, after aliases and variables are replaced.
inline constexpr std::size_t kMaxExpandedBytes = std::size_t{16} << 20;

/// Parses one document; an empty text is null. Aliases are replaced by copies of their values.
/// `origin` goes into every position. Throws SyntaxMistake.
Value parse_document(const std::string& text, int origin);

}  // namespace decent::config
