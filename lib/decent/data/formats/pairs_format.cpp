// The row of the format pairs in the table of formats.

#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/built_in.h"
#include "decent/data/csv/cells.h"
#include "decent/data/formats/pairs_source.h"

namespace decent {
namespace {

// One word per line.
std::vector<std::string> read_vocabulary(const std::filesystem::path& path) {
  const csv::TextFile file(path);
  std::vector<std::string> words;
  std::set<std::string> seen;
  csv::CellReader lines(file.text(), {.separator = '\0', .quoting = false}, file.name());
  while (lines.next_row()) {
    std::string word(lines.take().text);
    if (word.find_first_of(" \t") != std::string::npos)
      lines.fail("expected one word, got " + in_quotes(word));
    if (!is_utf8(word)) lines.fail_encoding("the word", word);
    if (!seen.insert(word).second) lines.fail("the word " + in_quotes(word) + " is there twice");
    words.push_back(std::move(word));
  }
  if (words.empty()) throw UserError("'" + file.name() + "': it has no words");
  return words;
}

SpecialTokens special_of(const std::vector<std::int64_t>& numbers) {
  const std::set<std::int64_t> different(numbers.begin(), numbers.end());
  if (numbers.size() != 4 || different.size() != 4)
    throw UserError("special: expected four different numbers: padding, begin, end, unknown");
  return {.pad = numbers[0], .begin = numbers[1], .end = numbers[2], .unknown = numbers[3]};
}

TokenKind kind_of(const std::string& tokens) {
  if (tokens == "words") return TokenKind::words;
  return tokens == "bytes" ? TokenKind::bytes : TokenKind::ids;
}

[[noreturn]] void fail_damaged(const Reading& reading) {
  throw UserError(reading.where + " is damaged: it has no words and columns of pairs");
}

std::string learned_name(const Reading& reading, const char* key) {
  const auto* name = std::get_if<std::string>(&reading.learned->value(key));
  if (name == nullptr) fail_damaged(reading);
  return *name;
}

// Takes the words and the columns that the run has learned. Whether a key names another column than
// data.train does is checked elsewhere, where keys are compared.
void take_learned(const Reading& reading, PairsOptions& pairs) {
  if (reading.learned == nullptr) return;
  pairs.source_name = learned_name(reading, "source");
  pairs.target_name = learned_name(reading, "target");
  const auto* words = std::get_if<std::vector<std::string>>(&reading.learned->value("words"));
  if (words == nullptr) fail_damaged(reading);
  if (pairs.tokens == TokenKind::words) pairs.vocabulary = *words;
}

std::unique_ptr<Source> open_as(const Options& options, const Reading& reading) {
  const auto& lengths = options.get<std::vector<std::int64_t>>("length");
  if (lengths.size() > 2)
    throw UserError("length: expected one number, or those of the source and the target");
  PairsOptions pairs{.source = options.get<std::string>("source"),
                     .target = options.get<std::string>("target"),
                     .needs_target = reading.needs_target,
                     .header = options.get<bool>("header"),
                     .separator = options.get<std::string>("separator"),
                     .source_length = lengths.front(),
                     .target_length = lengths.back(),
                     .cut = options.get<std::string>("too_long") == "cut",
                     .pad_in_batch = options.get<std::string>("pad") == "batch",
                     .tokens = kind_of(options.get<std::string>("tokens")),
                     .vocabulary = {},
                     .vocabulary_size = options.get_if<std::int64_t>("vocabulary_size"),
                     .special = special_of(options.get<std::vector<std::int64_t>>("special")),
                     .ignore_index = options.get<std::int64_t>("ignore_index"),
                     .fields = named_fields(options)};
  const auto vocabulary = options.get_if<std::filesystem::path>("vocabulary");
  if (vocabulary && reading.learned == nullptr) pairs.vocabulary = read_vocabulary(*vocabulary);
  const auto reference = options.get_if<Paths>("reference");
  const bool words = pairs.tokens == TokenKind::words;
  if (!words && (vocabulary || pairs.vocabulary_size || reference)) {
    throw UserError("vocabulary, vocabulary_size and reference are for `tokens: words`, not for " +
                    options.get<std::string>("tokens"));
  }
  if (vocabulary && (pairs.vocabulary_size || reference))
    throw UserError("vocabulary: it says all words; leave out reference and vocabulary_size");
  take_learned(reading, pairs);
  return open_pairs(csv::open_text_files(options.get<Paths>("path")),
                    reference ? csv::open_text_files(*reference) : csv::TextFiles{}, pairs);
}

std::unique_ptr<Source> open_with(const Options& options) { return open_as(options, Reading{}); }

std::vector<OptionKey> keys() {
  using enum OptionType;
  return {
      path_key("The file, a list of files or a glob: two columns of texts, plain or .gz."),
      {.name = "length",
       .type = integers,
       .meaning = "Largest number of elements of x and of y; one number is for both. Shorter texts "
                  "are padded.",
       .range = within(2, 1 << 24)},
      {.name = "pad",
       .type = text,
       .meaning = "Pad texts to `length`, or with `batch` to the longest text of the batch.",
       .fallback = std::string("length"),
       .names = {"length", "batch"}},
      {.name = "tokens",
       .type = text,
       .meaning = "What texts are made of: words (between blanks), bytes, or ids (numbers between "
                  "blanks, taken as they are).",
       .fallback = std::string("words"),
       .names = {"words", "bytes", "ids"},
       .scope = OptionScope::meaning},
      {.name = "source",
       .type = text,
       .meaning = "Column of the source: its name or its number.",
       .fallback = std::string("0"),
       .scope = OptionScope::meaning},
      {.name = "target",
       .type = text,
       .meaning = "Column of the target.",
       .fallback = std::string("1"),
       .scope = OptionScope::meaning},
      {.name = "header",
       .type = boolean,
       .meaning = "Whether the first row has the names of the columns.",
       .fallback = false},
      {.name = "separator",
       .type = text,
       .meaning = "As for `csv`. If cells are separated by tabs, quotes are ordinary characters.",
       .fallback = std::string("auto")},
      {.name = "too_long",
       .type = text,
       .meaning = "Whether texts that are longer than `length` are refused or cut.",
       .fallback = std::string("error"),
       .names = {"error", "cut"}},
      {.name = "vocabulary",
       .type = path,
       .meaning = "File of all words, one per line, in the order of their numbers; null: the words "
                  "of `reference`, the most frequent first.",
       .fallback = kNull},
      {.name = "reference",
       .type = paths,
       .meaning = "Files from which the known words are taken, usually the training data; null: "
                  "the source's own files.",
       .fallback = kNull},
      {.name = "vocabulary_size",
       .type = integer,
       .meaning = "Size of the vocabulary, special tokens included: the most frequent words have "
                  "numbers, and all others are unknown; null: all words have numbers.",
       .fallback = kNull,
       .range = at_least(1),
       .scope = OptionScope::meaning},
      {.name = "special",
       .type = integers,
       .meaning = "The numbers of padding, begin, end and unknown words. Other tokens come after "
                  "the largest.",
       .fallback = std::vector<std::int64_t>{0, 1, 2, 3},
       .range = within(0, 1'000'000),
       .scope = OptionScope::meaning},
      {.name = "ignore_index",
       .type = integer,
       .meaning = "Value that pads y; give the same number as for `model.ignore_index`.",
       .fallback = std::int64_t{-100},
       .scope = OptionScope::meaning},
      fields_key()};
}

}  // namespace

DataFormat pairs_format() {
  return {.name = "pairs", .keys = keys(), .open = open_with, .open_as = open_as};
}

}  // namespace decent
