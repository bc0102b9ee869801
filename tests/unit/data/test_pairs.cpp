// Pairs of texts: fields in closed form, and what is told of wrong files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "decent/data/formats/pairs_source.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal;
using testing::TemporaryFolder;

csv::TextFiles file(const std::string& content, const char* name = "t.tsv") {
  return {std::make_shared<const csv::TextFile>(content, name)};
}

PairsOptions options(std::int64_t source, std::int64_t target) {
  PairsOptions options;
  options.source_length = source;
  options.target_length = target;
  return options;
}

template <class T = std::int64_t>
std::vector<T> all_of(const Source& source, const char* name) {
  const std::size_t field = source.field_index(name).value();
  std::vector<std::int64_t> indices(static_cast<std::size_t>(source.size()));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<T> values(indices.size() * source.fields()[field].sample_bytes() / sizeof(T));
  source.read(field, indices, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

TEST(Pairs, ArePaddedAndShifted) {
  // Frequency first, then bytes: b, then a, c, d.
  const auto source = open_pairs(file("a b\tb  c\nb\td b \n"), {}, options(3, 4));
  ASSERT_EQ(source->fields().size(), 5U);
  EXPECT_EQ(source->fields()[0].shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(source->fields()[3].shape, std::vector<std::int64_t>{4});
  EXPECT_EQ(source->fields()[4].dtype, DType::boolean);
  EXPECT_THAT(all_of(*source, "x"), ElementsAre(5, 4, 0, 4, 0, 0));
  EXPECT_THAT(all_of<std::uint8_t>(*source, "x_mask"), ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_THAT(all_of(*source, "y_in"), ElementsAre(1, 4, 6, 0, 1, 7, 4, 0));
  EXPECT_THAT(all_of(*source, "y"), ElementsAre(4, 6, 2, -100, 7, 4, 2, -100));
  EXPECT_THAT(all_of<std::uint8_t>(*source, "y_mask"), ElementsAre(1, 1, 1, 0, 1, 1, 1, 0));
  EXPECT_THAT(source->classes(),
              ElementsAre("<pad>", "<begin>", "<end>", "<unknown>", "b", "a", "c", "d"));
}

template <class T = std::int64_t>
std::vector<T> values_of(const HostArray& array) {
  return {array.as<T>().begin(), array.as<T>().end()};
}

TEST(Pairs, HaveColumnsBesideTheTexts) {
  for (const bool in_batch : {false, true}) {
    PairsOptions with_weight = options(3, 4);
    with_weight.fields = {"2"};
    with_weight.pad_in_batch = in_batch;
    const auto source = open_pairs(file("a b\tb\t0.5\nb\td\t2\n"), {}, with_weight);
    ASSERT_EQ(source->fields().size(), 6U);
    EXPECT_EQ(source->fields()[5], (Field{"2", DType::float32, {}}));
    EXPECT_THAT(all_of<float>(*source, "2"), ElementsAre(0.5F, 2.0F));
    std::vector<HostArray> sample(6);
    source->read_one(std::vector<std::size_t>{0, 5}, 1, sample);
    EXPECT_TRUE(sample[5].shape.empty());
    EXPECT_THAT(values_of<float>(sample[5]), ElementsAre(2.0F));
    EXPECT_EQ(values_of(sample[0]).front(), 4);  // b, the most frequent
  }
  PairsOptions taken = options(3, 4);
  taken.header = true;
  taken.fields = {"y_in"};
  EXPECT_EQ(refusal([&] { open_pairs(file("a\tb\ty_in\nc\td\t1\n"), {}, taken); }),
            "'t.tsv': fields names column 'y_in', but pairs have a field of this name");
}

// To be padded in the batch: each has its own extents.
TEST(Pairs, AreAsLongAsTheyAreWhereTheBatchPads) {
  PairsOptions in_batch = options(3, 4);
  in_batch.pad_in_batch = true;
  in_batch.special.pad = 9;
  const auto source = open_pairs(file("a b\tb  c\nb\td\n"), {}, in_batch);
  for (const Field& field : source->fields())
    EXPECT_EQ(field.shape, std::vector<std::int64_t>{kAnyExtent}) << field.name;
  EXPECT_EQ(source->fields()[0].padding, 9);
  EXPECT_EQ(source->fields()[3].padding, -100);
  std::vector<HostArray> sample(5);
  source->read_one(std::vector<std::size_t>{0, 1, 2, 3, 4}, 1, sample);
  EXPECT_THAT(values_of(sample[0]), ElementsAre(10));
  EXPECT_THAT(values_of<bool>(sample[1]), ElementsAre(true));
  EXPECT_THAT(values_of(sample[2]), ElementsAre(1, 13));
  EXPECT_THAT(values_of(sample[3]), ElementsAre(13, 2));
  EXPECT_THAT(values_of<bool>(sample[4]), ElementsAre(true, true));
  EXPECT_EQ(sample[3].shape, std::vector<std::int64_t>{2});
  source->read_one(std::vector<std::size_t>{0}, 0, sample);
  EXPECT_THAT(values_of(sample[0]), ElementsAre(11, 10));
  EXPECT_EQ(source->length_of(0), 3);  // y_in and y: the target and one more
  EXPECT_EQ(source->Source::length_of(0), 3);
  EXPECT_EQ(source->length_of(1), 2);
  EXPECT_EQ(open_pairs(file("a b\tb  c\n"), {}, options(3, 4))->length_of(0), 0);
  in_batch.source_length = 2;
  EXPECT_EQ(refusal([&] { open_pairs(file("a b c\td\n"), {}, in_batch); }),
            "t.tsv:1: column 0: expected at most 2 tokens, got 3; `too_long: cut` cuts texts");
}

TEST(Pairs, TakeTheWordsOfTheReference) {
  const auto source = open_pairs(file("new a\tb\n"), file("a\tb\na\tb\nb\tc\n"), options(2, 2));
  EXPECT_THAT(all_of(*source, "x"), ElementsAre(3, 5));  // b 3 times, a 2
  EXPECT_THAT(all_of(*source, "y"), ElementsAre(4, 2));
  PairsOptions few = options(2, 2);
  few.vocabulary_size = 5;
  EXPECT_THAT(all_of(*open_pairs(file("a b\tb\n"), file("a\tb\nb\tc\n"), few), "x"),
              ElementsAre(3, 4));
}

TEST(Pairs, TakeBytesAndIds) {
  PairsOptions bytes = options(3, 3);
  bytes.tokens = TokenKind::bytes;
  const auto of_bytes = open_pairs(file("a\"b\tB\n"), {}, bytes);
  EXPECT_THAT(all_of(*of_bytes, "x"), ElementsAre(101, 38, 102));
  EXPECT_THAT(all_of(*of_bytes, "y"), ElementsAre(70, 2, -100));
  EXPECT_TRUE(of_bytes->classes().empty());
  PairsOptions ids = options(3, 3);
  ids.tokens = TokenKind::ids;
  ids.special = {.pad = 9, .begin = 7, .end = 8, .unknown = 6};
  ids.ignore_index = 9;
  const auto of_ids = open_pairs(file("11 12\t5\n"), {}, ids);
  EXPECT_THAT(all_of(*of_ids, "x"), ElementsAre(11, 12, 9));
  EXPECT_THAT(all_of(*of_ids, "y_in"), ElementsAre(7, 5, 9));
  EXPECT_THAT(all_of(*of_ids, "y"), ElementsAre(5, 8, 9));
}

TEST(Pairs, AreCutWhereAsked) {
  PairsOptions cut = options(2, 3);
  cut.cut = true;
  const auto source = open_pairs(file("a b c\ta b c\n"), {}, cut);
  EXPECT_THAT(all_of(*source, "x"), ElementsAre(4, 5));
  EXPECT_THAT(all_of(*source, "y"), ElementsAre(4, 5, 2));
}

// Between commas a text may be in quotes; between tabs quotes are characters.
TEST(Pairs, KnowQuotes) {
  PairsOptions named = options(4, 4);
  named.header = true;
  named.source = "de";
  named.target = "en";
  const auto of_csv = open_pairs(file("id,en,de\n1,\"a, b\",\"b\"\n", "t.csv"), {}, named);
  EXPECT_THAT(all_of(*of_csv, "x"), ElementsAre(4, 0, 0, 0));
  EXPECT_THAT(all_of(*of_csv, "y"), ElementsAre(5, 4, 2, -100));  // the words "a," and "b"
  EXPECT_EQ(open_pairs(file("\"Hello\", she said\t\"Hallo\n"), {}, options(4, 4))->size(), 1);
  PairsOptions same = options(2, 4);
  same.target = "0";
  const auto copy = open_pairs(file("a b\n"), {}, same);
  EXPECT_THAT(all_of(*copy, "x"), ElementsAre(4, 5));
  EXPECT_THAT(all_of(*copy, "y"), ElementsAre(4, 5, 2, -100));
}

Options given(const std::filesystem::path& path, std::initializer_list<Options> more) {
  Options all = {{"path", Paths{path}}, {"length", std::vector<std::int64_t>{4}}};
  for (const Options& each : more) all.set(each.all()[0].first, each.all()[0].second);
  return with_defaults(data_format("pairs").keys, all);
}

TEST(Pairs, OpenByTheirKeys) {
  const TemporaryFolder folder;
  write_file(folder / "t.tsv", "a b\tc\n");
  write_file(folder / "words", "c\r\nb\na\n");
  const auto open = [&](std::initializer_list<Options> more) {
    return data_format("pairs").open(given(folder / "t.tsv", more));
  };
  EXPECT_THAT(all_of(*open({}), "x"), ElementsAre(4, 5, 0, 0));
  const OptionValue words = folder / "words";
  EXPECT_THAT(all_of(*open({{{"vocabulary", words}}}), "x"), ElementsAre(6, 5, 0, 0));
  EXPECT_EQ(refusal([&] {
              open({{{"tokens", std::string("bytes")}}, {{"vocabulary", words}}});
            }),
            "vocabulary, vocabulary_size and reference are for `tokens: words`, not for bytes");
  EXPECT_EQ(refusal([&] {
              open({{{"vocabulary_size", std::int64_t{9}}}, {{"vocabulary", words}}});
            }),
            "vocabulary: it says all words; leave out reference and vocabulary_size");
  EXPECT_EQ(refusal([&] {
              open({{{"special", std::vector<std::int64_t>{0, 1, 2, 2}}}});
            }),
            "special: expected four different numbers: padding, begin, end, unknown");
  EXPECT_EQ(
      refusal([&] {
        open({{{"vocabulary_size", std::int64_t{4}}}});
      }),
      "vocabulary_size: expected more than the 4 numbers up to the largest special token, got "
      "4");
  write_file(folder / "words", "a\nb\na\n");
  EXPECT_THAT(refusal([&] {
                open({{{"vocabulary", words}}});
              }),
              HasSubstr("words:3: the word 'a' is there twice"));
  write_file(folder / "words", "a 7\n");
  EXPECT_THAT(refusal([&] {
                open({{{"vocabulary", words}}});
              }),
              HasSubstr("words:1: expected one word, got 'a 7'"));
}

struct Wrong {
  const char* content;
  TokenKind tokens;
  const char* message;
};

TEST(Pairs, SayWhereAFileIsWrong) {
  const std::vector<Wrong> cases = {
      {"", TokenKind::words, "'t.tsv': it has no rows"},
      {"a\tb\nc\n", TokenKind::words,
       "t.tsv:2: expected 2 cells, as in line 1, got 1 with the separator tab"},
      {"a\tb\nc\td\te\n", TokenKind::bytes,
       "t.tsv:2: expected 2 cells, as in line 1, got 3 with the separator tab"},
      {"a\tb\nc\t \n", TokenKind::words, "t.tsv:2: column 1: expected a text, it is empty"},
      {"a b c d e\tb\n", TokenKind::words,
       "t.tsv:1: column 0: expected at most 4 tokens, got 5; `too_long: cut` cuts texts"},
      {"a\tbcde\n", TokenKind::bytes,
       "t.tsv:1: column 1: expected at most 3 tokens, got 4; `too_long: cut` cuts texts"},
      {"1\t2 x3\n", TokenKind::ids, "t.tsv:1: column 1: expected an id, an integer >= 0, got 'x3'"},
      {"1\t-2\n", TokenKind::ids, "t.tsv:1: column 1: expected an id, an integer >= 0, got '-2'"},
      {"a\n", TokenKind::words,
       "'t.tsv': y names a column '1', which it does not have; expected a number from 0 to 0 (its "
       "first row is no header)"},
  };
  for (const Wrong& wrong : cases) {
    PairsOptions its = options(4, 4);
    its.tokens = wrong.tokens;
    EXPECT_EQ(refusal([&] { open_pairs(file(wrong.content), {}, its); }), wrong.message);
  }
}

}  // namespace
}  // namespace decent
