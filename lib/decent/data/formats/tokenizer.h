#pragma once
// Turns the texts of pairs into numbers of tokens. No torch.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace decent {

/// Numbers with a special meaning. The tokens of texts are numbered after the largest of them.
struct SpecialTokens {
  std::int64_t pad = 0;
  std::int64_t begin = 1;
  std::int64_t end = 2;
  std::int64_t unknown = 3;

  std::int64_t largest() const;
};

/// Words are separated by blanks. With bytes, each byte is a token. Ids are numbers separated by
/// blanks, taken as they are.
enum class TokenKind { words, bytes, ids };

/// Counts how often each word occurs.
class WordCounts {
 public:
  void add(std::string_view text);
  /// Up to `most` words, the most frequent first, equally frequent ones in the order of their
  /// bytes.
  std::vector<std::string> words(std::optional<std::size_t> most) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

class Tokenizer {
 public:
  /// `vocabulary` is used for words and contains each once.
  Tokenizer(TokenKind kind, SpecialTokens special, std::vector<std::string> vocabulary);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The numbers of the text's tokens; a word that the vocabulary does not have is special.unknown.
  /// Throws UserError for an invalid id, without its place.
  void read(std::string_view text, std::vector<std::int64_t>& tokens) const;

  /// With words: the vocabulary, in the order of the numbers.
  const std::vector<std::string>& words() const { return vocabulary_; }
  const SpecialTokens& special() const { return special_; }
  /// With words: the meaning of each number, special ones included. Empty for bytes and ids.
  std::vector<std::string> names() const;

 private:
  std::int64_t number_of(std::string_view word) const;

  TokenKind kind_;
  SpecialTokens special_;
  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string_view, std::int64_t> numbers_;  // views of vocabulary_
};

}  // namespace decent
