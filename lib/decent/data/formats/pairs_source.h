#pragma once
// Pairs of texts as a data source, for models with an encoder and a decoder. No torch.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/data/csv/text_file.h"
#include "decent/data/formats/tokenizer.h"
#include "decent/data/source.h"

namespace decent {

struct PairsOptions {
  std::string source = "0";  // columns: names or numbers
  std::string target = "1";
  bool needs_target = true;  // false: files may lack that column, and there are only x and x_mask
  bool header = false;
  std::string separator = "auto";
  std::int64_t source_length = 0;
  std::int64_t target_length = 0;
  bool cut = false;           // cuts longer texts; else they are refused
  bool pad_in_batch = false;  // pads to the longest of the batch; else to the two lengths
  TokenKind tokens = TokenKind::words;
  std::optional<std::vector<std::string>> vocabulary;  // none: that of the reference
  std::optional<std::int64_t> vocabulary_size;         // with special tokens; none: all words
  SpecialTokens special;
  std::int64_t ignore_index = -100;
  std::vector<std::string> fields = {};  // columns of numbers, by name or number
  /// The names of the two columns in the training data, if it has names. Files that have names too
  /// are read by them.
  std::string source_name = {};
  std::string target_name = {};
};

/// Fields, where S and T are the two lengths, or with pad_in_batch any extent up to them: x int64
/// [S], the tokens of the source, then padding; x_mask bool [S], true for tokens; y_in int64 [T],
/// the token `begin`, the tokens of the target, then padding; y int64 [T], the tokens of the
/// target, the token `end`, then ignore_index; y_mask bool [T]; float32 [] for each column that
/// `fields` names. The vocabulary comes from
/// `reference`, or from the files themselves if that is empty. Throws UserError with the line and
/// the column of a mistake.
std::unique_ptr<Source> open_pairs(const csv::TextFiles& files, const csv::TextFiles& reference,
                                   const PairsOptions& options);

}  // namespace decent
