#pragma once
// What must be learned from all rows of a table before samples can be made: classes, categories,
// means. No torch.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "decent/data/csv/cells.h"
#include "decent/data/csv/layout.h"

namespace decent::csv {

/// What the target is.
enum class Target { none, numbers, integers, words };

struct Learned {
  std::string from;  // where they come from, for messages: a file's name in quotes, "data.train"
  Target target = Target::none;
  std::vector<std::string> classes;                  // of words, sorted bytewise
  std::vector<std::vector<std::string>> categories;  // by column of x; empty: numbers
  std::vector<float> means;                          // by column of x, for columns of numbers
  std::int64_t filled = 0;                           // cells of x that were missing
};

/// The different words of a column, up to the number that may be classes.
class Words {
 public:
  static constexpr std::size_t kMaxWords = 65536;

  void add(std::string_view word) {
    if (words_.size() <= kMaxWords && words_.find(word) == words_.end()) words_.emplace(word);
  }
  bool too_many() const { return words_.size() > kMaxWords; }
  std::vector<std::string> sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  std::unordered_set<std::string, Hash, std::equal_to<>> words_;
};

/// Gathers what is learned, row by row, in one file after another.
class Survey {
 public:
  /// `y_type` as CsvOptions has it.
  Survey(const Layout& layout, std::string y_type);

  void number(std::size_t x, float value) {
    sums_[x] += value;
    ++counts_[x];
  }
  void word(std::size_t x, std::string_view text) { categories_[x].add(text); }
  /// Takes a target that may be a class. Throws UserError if `y_type` does not allow it.
  void target(const CellReader& row, const std::string& column, const Cell& cell);

  /// Throws UserError naming `file` if a column has too many words, or no mean although `means`
  /// asks for means, and if targets are neither all numbers nor all words.
  Learned learned(const std::string& file, bool means) const;

 private:
  // Where something was seen first: its message begins with the file and the line.
  struct Seen {
    std::string where;
    std::string text;
    bool first_row = false;  // that counts as data because it does not look like names
    bool any() const { return !where.empty(); }
  };

  void see(Seen& seen, const CellReader& row, const std::string& column,
           std::string_view text) const;
  void check_first_row() const;
  void learn_target(Learned& learned) const;

  Layout layout_;
  std::string y_type_;
  std::vector<double> sums_;
  std::vector<std::int64_t> counts_;
  std::vector<Words> categories_;
  Words classes_;
  Seen integer_, fraction_, word_;
  std::int64_t words_ = 0;
  Seen marker_;  // of a missing value
};

}  // namespace decent::csv
