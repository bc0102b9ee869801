#pragma once
// The user's mistakes, collected so that they are all reported together.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent::config {

/// A place in a recipe: in its own file (origin 0), in the n-th file that it extends (origin -n),
/// or in the n-th --set override (origin n). Lines and columns count from 1.
struct Where {
  int origin = 0;
  int line = 1;
  int column = 1;
  bool operator==(const Where&) const = default;
};

class Mistakes {
 public:
  Mistakes(const std::filesystem::path& file, std::span<const std::string> overrides);

  /// A further file of the recipe. Returns the origin of what is in it.
  int add_file(const std::filesystem::path& file);

  /// The recipe's file, then those that were added.
  const std::vector<std::filesystem::path>& files() const { return files_; }

  /// The folder of the file with this origin; nothing for an override.
  std::optional<std::filesystem::path> folder_of(int origin) const;

  /// `key` is the dotted key that the mistake is about; it may be empty.
  void add(Where where, std::string_view key, const std::string& text);

  std::size_t size() const { return mistakes_.size(); }

  /// Throws UserError with one line per mistake, those of the recipe's file first, then those
  /// of files that it extends, then those of overrides, each by position.
  void throw_if_any() const;

 private:
  struct Mistake {
    Where where;
    std::string text;
  };

  std::string place(Where where) const;

  std::string name_of(int origin) const;
  bool is_before(Where a, Where b) const;

  std::vector<std::filesystem::path> files_;
  std::vector<std::string> overrides_;
  std::vector<Mistake> mistakes_;
};

/// `text` made fit for one line of a message: control characters and invalid UTF-8 become '?', and
/// a text of more than `limit` bytes is cut.
std::string abbreviate(std::string_view text, std::size_t limit = 60);

/// "; did you mean 'lr'?", or nothing if no candidate is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace decent::config
