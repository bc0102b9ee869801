#pragma once
// A JSON text from a file of unknown origin, read once and kept flat: 32 bytes per value. Every
// access checks the kind of the value; an error names the file and the place in it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace decent::pt2 {

class JsonDocument;
class JsonValues;

/// A value of a document, which must outlive it.
class Json {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, real, text, list, object };

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  /// Whether it is the same place of the same document.
  bool operator==(const Json&) const = default;

  // Each throws UserError if the value is of another kind.

  bool boolean() const;
  std::int64_t integer() const;
  /// Takes integers, too, and the texts for values that JSON cannot write as numbers: "Infinity",
  /// "-Infinity", "NaN".
  double real() const;
  const std::string& text() const;

  // ---- lists and objects: each value follows the one before it

  JsonValues list() const;
  JsonValues object() const;
  std::size_t size() const;  // of a list or an object

  /// The key of a value in an object.
  const std::string& key() const;

  /// The value of a key. Throws UserError if there is none.
  Json at(std::string_view key) const;
  /// Nothing if there is none or it is null.
  std::optional<Json> find(std::string_view key) const;
  /// The only value of an object, whose key says of which kind it is. Throws UserError if there are
  /// more or none.
  Json alternative() const;

  /// Throws UserError: the file, the place in it, then `reason`, such as "is 7, not a list".
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  friend class JsonDocument;
  friend class JsonValues;
  Json(const JsonDocument& document, std::uint32_t index) : document_(&document), index_(index) {}
  [[noreturn]] void fail_kind(const char* expected) const;
  JsonValues values() const;

  const JsonDocument* document_;
  std::uint32_t index_;
};

/// The values of a list or an object, in the order of the file.
class JsonValues {
 public:
  class Iterator {
   public:
    explicit Iterator(Json value) : value_(value) {}
    Json operator*() const { return value_; }
    Iterator& operator++();
    bool operator==(const Iterator&) const = default;

   private:
    Json value_;
  };

  JsonValues(Json first, Json end) : first_(first), end_(end) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(end_); }

 private:
  Json first_;
  Json end_;
};

/// The deepest nesting that is read, which is that of about 60 conditions inside of one another.
inline constexpr std::size_t kMaxJsonDepth = 512;

/// Limits on the values of a text, keys not counted: the most of any text, the bytes that each
/// needs, and the number that is allowed even in a shorter text.
inline constexpr std::size_t kMaxJsonValues = 8'000'000;
inline constexpr std::size_t kMinBytesPerJsonValue = 4;
inline constexpr std::size_t kMaxValuesOfSmallJson = 100'000;

class JsonDocument {
 public:
  /// Throws UserError, which begins with `what`, if the text is no JSON, is nested too deep, or has
  /// too many values. Memory is allocated as the values are read.
  JsonDocument(std::string_view text, std::string what);
  JsonDocument(const JsonDocument&) = delete;  // values point to it
  JsonDocument& operator=(const JsonDocument&) = delete;
  ~JsonDocument();

  Json root() const { return Json(*this, 0); }

 private:
  friend class Json;
  friend class JsonValues;
  class Builder;
  struct Value;
  struct Content;

  const Value& value(std::uint32_t index) const;
  std::string place_of(std::uint32_t index) const;

  std::string what_;
  std::unique_ptr<Content> content_;
};

}  // namespace decent::pt2
