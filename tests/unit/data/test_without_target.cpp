// Sources for predictions: without a target, and where each sample came from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/refusal.h"
#include "decent/data/csv/csv_source.h"
#include "decent/data/shards.h"
#include "decent/data/subset.h"
#include "numbered_source.h"

namespace decent {
namespace {

using csv::CsvOptions;
using csv::TextFile;
using csv::TextFiles;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal;

TextFiles table(const std::string& content, const char* name = "t.csv") {
  return {std::make_shared<const TextFile>(content, name)};
}

std::unique_ptr<Source> inputs(const std::string& content, const CsvOptions& options = {},
                               const TextFiles& reference = {}) {
  return csv::open_csv(table(content), reference, options, /*needs_target=*/false);
}

// As training data of those options is read.
std::unique_ptr<Source> inputs_as(const std::string& content, const std::string& train,
                                  const CsvOptions& options) {
  const csv::KnownTable known = csv::learn_table(table(train, "train.csv"), options);
  return csv::open_csv_as(table(content), {}, {}, known, options, /*needs_target=*/false);
}

// x of the one row.
std::vector<float> row_of(const Source& source) {
  EXPECT_EQ(source.fields().size(), 1U);
  const HostArray x = source.read_one(0, 0);
  return {x.as<float>().begin(), x.as<float>().end()};
}

TEST(CsvInputs, AreAllButTheLastColumnWhereNothingSaysMore) {
  EXPECT_THAT(row_of(*inputs("a,b,y\n1,2,?\n")), ElementsAre(1, 2));
  EXPECT_THAT(row_of(*inputs("a,b\n1,2\n", {.y = {{"none"}}})), ElementsAre(1, 2));
  EXPECT_THAT(row_of(*inputs("y,a,b\n?,1,2\n", {.y = {{"y"}}})), ElementsAre(1, 2));
  EXPECT_THAT(row_of(*inputs("a,b\n1,2\n", {.y = {{"y"}}})), ElementsAre(1, 2));
  EXPECT_THAT(row_of(*inputs("a,b,y\n1,2,?\n", {.y = {{"y"}}, .drop = {"y", "a"}})),
              ElementsAre(2));
}

TEST(CsvInputs, AreFoundByTheNamesOfOtherFiles) {
  const CsvOptions by_name{.y = {{"y"}}};
  for (const char* content : {"a,b\n1,2\n", "b,a\n2,1\n", "b,y,id,a\n2,?,x7,1\n"})
    EXPECT_THAT(row_of(*inputs_as(content, "a,y,b\n3,4,5\n", by_name)), ElementsAre(1, 2));
  EXPECT_THAT(refusal([&] { inputs_as("a,c\n1,2\n", "a,y,b\n3,4,5\n", by_name); }),
              HasSubstr("'t.csv' has no column 'b', which 'train.csv' has"));
}

TEST(CsvInputs, AreFoundByTheirOrderWhereAFileHasNoNames) {
  const CsvOptions second{.y = {{"1"}}};
  EXPECT_THAT(row_of(*inputs_as("1,2\n", "3,4,5\n", second)), ElementsAre(1, 2));
  EXPECT_THAT(row_of(*inputs_as("1,?,2\n", "3,4,5\n", second)), ElementsAre(1, 2));
  EXPECT_THAT(row_of(*inputs_as("1,2\n", "a,y,b\n3,4,5\n", {.y = {{"y"}}})), ElementsAre(1, 2));
  EXPECT_EQ(refusal([&] { inputs_as("1,2,3,4\n", "3,4,5\n", second); }),
            "'t.csv' has 4 columns; expected 3, as 'train.csv' has, or 2 without the target");
}

TEST(CsvInputs, AreThoseThatAreNamed) {
  EXPECT_THAT(row_of(*inputs("a,b,c\n1,2,3\n", {.x = {{"c", "a"}}})), ElementsAre(3, 1));
}

TEST(CsvInputs, TakeCategoriesMeansAndClassesOfAReference) {
  const TextFiles reference = table("word,n,y\nant,1,no\ncow,3,yes\n", "r.csv");
  const CsvOptions options{.one_hot = {"word"}, .missing = "mean"};
  const auto source = inputs("word,n\ncow,\n", options, reference);
  EXPECT_THAT(row_of(*source), ElementsAre(0, 1, 2));
  EXPECT_THAT(source->classes(), ElementsAre("no", "yes"));
  EXPECT_THAT(refusal([&] { inputs("word,n\nape,1\n", options, reference); }),
              HasSubstr("expected one of the categories of 'r.csv', 'ant', 'cow', got 'ape'"));
}

TEST(Origin, IsTheFileAndTheRowInIt) {
  std::vector<std::unique_ptr<Source>> shards;
  for (const std::int64_t size : {2, 3})
    shards.push_back(std::make_unique<testing::NumberedSource>(size));
  const auto source = limited(concatenated(std::move(shards), {"a", "b"}), 4);
  std::vector<std::string> files;
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    files.push_back(source->origin_of(i).file);
    rows.push_back(source->origin_of(i).row.value());
  }
  EXPECT_THAT(files, ElementsAre("a", "a", "b", "b"));
  EXPECT_THAT(rows, ElementsAre(0, 1, 0, 1));
}

TEST(Origin, OfAPartIsTheRowInTheWhole) {
  const auto part = held_out(std::make_unique<testing::NumberedSource>(50),
                             {.fraction = 0.2, .seed = 3, .evaluates = true});
  for (std::int64_t i = 0; i < part->size(); ++i) {
    EXPECT_EQ(part->origin_of(i).row, part->read_one(0, i).as<std::int64_t>()[0]);
    EXPECT_EQ(part->origin_of(i).file, "");
  }
}

}  // namespace
}  // namespace decent
