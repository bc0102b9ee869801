#pragma once
// The user's mistakes, collected so that they are all reported together.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace decent::config {

/// A place in the recipe file (origin 0) or in the origin-th --set override. Lines and columns
/// count from 1.
struct Where {
  int origin = 0;
  int line = 1;
  int column = 1;
  bool operator==(const Where&) const = default;
  bool operator<(const Where& other) const {
    return std::tie(origin, line, column) < std::tie(other.origin, other.line, other.column);
  }
};

class Mistakes {
 public:
  Mistakes(const std::filesystem::path& file, std::span<const std::string> overrides);

  /// `key` is the dotted key that the mistake is about; it may be empty.
  void add(Where where, std::string_view key, const std::string& text);

  std::size_t size() const { return mistakes_.size(); }

  /// Throws UserError with one line per mistake, those of the file first, by position.
  void throw_if_any() const;

 private:
  struct Mistake {
    Where where;
    std::string text;
  };

  std::string place(Where where) const;

  std::string file_;
  std::vector<std::string> overrides_;
  std::vector<Mistake> mistakes_;
};

/// `text` made fit for one line of a message: control characters and invalid UTF-8 become '?', and
/// a text of more than `limit` bytes is cut.
std::string abbreviate(std::string_view text, std::size_t limit = 60);

/// "; did you mean 'lr'?", or nothing if no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace decent::config
