#include "decent/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"
#include "manifests.h"

namespace decent {
namespace {

using testing::example;
using testing::example_alike;
using testing::example_of_survivors;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Manifest again(const Manifest& manifest) {
  return parse_manifest(print_manifest(manifest), "manifest.json");
}

TEST(Manifest, ReadsWhatItPrints) { EXPECT_EQ(again(example()), example()); }

TEST(Manifest, KeepsEveryBitOfNumbers) {
  Manifest manifest = example();
  manifest.step = std::numeric_limits<std::int64_t>::max();
  manifest.epoch = manifest.step;
  manifest.consumed = manifest.step - 1;
  manifest.epochs_done = std::numeric_limits<double>::denorm_min();
  manifest.metrics = {{"loss", std::numeric_limits<double>::max()},
                      {"mse", std::numeric_limits<double>::lowest()},
                      {"mae", 1.0 / 3},
                      {"r2", -5}};
  manifest.files[0].bytes = static_cast<std::uint64_t>(manifest.step);
  manifest.files[1].bytes = 0;
  EXPECT_EQ(again(manifest), manifest);
}

TEST(Manifest, KeepsTextsThatJsonEscapes) {
  Manifest manifest = example();
  manifest.program = "";
  manifest.recipe = std::string("\"\\/\b\f\n\r\t\0\x7f", 10) + "äöü 漢字 \U0001F600";
  manifest.facts = {{"", ""}, {"a \"quoted\" topic\n", "}],{\"checksum\": \""}};
  EXPECT_EQ(again(manifest), manifest);
}

TEST(Manifest, KeepsTheOrderOfMetricsAndFacts) {
  Manifest manifest = example();
  manifest.metrics = {{"z", 1}, {"a", 2}, {"m", 3}};
  manifest.facts = {{"z", "1"}, {"a", "2"}, {"m", "3"}};
  EXPECT_EQ(again(manifest), manifest);
}

TEST(Manifest, NeedsNoMetricsAndFacts) {
  Manifest manifest = example();
  manifest.metrics.clear();
  manifest.facts.clear();
  EXPECT_EQ(again(manifest), manifest);
}

TEST(Manifest, ForgetsMetricsThatAreNotFinite) {
  Manifest manifest = example();
  manifest.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()},
                      {"accuracy", 0.5},
                      {"perplexity", std::numeric_limits<double>::infinity()}};
  Manifest expected = manifest;
  expected.metrics = {{"accuracy", 0.5}};
  EXPECT_EQ(again(manifest), expected);
}

TEST(Manifest, MayNameAFileOfWhatWasLearned) {
  Manifest manifest = example();
  EXPECT_EQ(print_manifest(manifest).find("data.json"), std::string::npos);
  manifest.data = CheckpointFile{"data.json", 17, std::string(32, 'c')};
  EXPECT_EQ(again(manifest), manifest);
}

TEST(Manifest, SaysThatAnEvaluationIsPendingOnlyWhereItIs) {
  Manifest manifest = example();
  EXPECT_EQ(print_manifest(manifest).find("evaluation_pending"), std::string::npos);
  manifest.evaluation_pending = true;
  EXPECT_EQ(again(manifest), manifest);
}

// Paths in recipes and names of tensors need not be UTF-8; a checkpoint must be readable all the
// same.
TEST(Manifest, ReplacesWhatIsNotUtf8) {
  Manifest manifest = example();
  manifest.recipe = "output: /\xff\xfe/run";
  manifest.facts = {{"parameter \xc3", "float32[1]"}};
  const Manifest read = again(manifest);
  EXPECT_EQ(read.recipe, "output: /\uFFFD\uFFFD/run");
  EXPECT_EQ(read.facts[0].first, "parameter \uFFFD");
}

TEST(Manifest, HoldsManyFiles) {
  Manifest manifest = example();
  manifest.world_size = 10'001;
  manifest.files.clear();
  for (int rank = 0; rank < manifest.world_size; ++rank) {
    manifest.files.push_back({replica_file_name(rank), static_cast<std::uint64_t>(rank), "0"});
  }
  EXPECT_EQ(again(manifest), manifest);
}

TEST(Manifest, BeginsWithTheChecksumOfTheRest) {
  const std::string text = print_manifest(example());
  const std::size_t line = text.find('\n');
  EXPECT_EQ(text.substr(0, line), "{\"checksum\": \"" + checksum_of(text.substr(line + 1)) + "\",");
  EXPECT_THAT(text.substr(line + 1),
              StartsWith(" \"format\": \"decent-train checkpoint\",\n \"version\": 1,\n"));
  EXPECT_EQ(text.substr(text.size() - 3), "\n}\n");
}

TEST(Manifest, TellsWhichFilesHoldWhatIsShared) {
  const Manifest manifest = example_alike();
  EXPECT_EQ(again(manifest), manifest);
  EXPECT_TRUE(manifest.copies_alike());
  EXPECT_EQ(manifest.with_everything(), (std::vector<int>{0, 2}));
  EXPECT_FALSE(example().copies_alike());
  EXPECT_EQ(example().with_everything(), (std::vector<int>{0, 1}));
}

// Programs that know only version 1 take every file for a whole replica.
TEST(Manifest, HasAnotherVersionWhereFilesHoldOnlyAPart) {
  EXPECT_THAT(print_manifest(example_alike()), HasSubstr("\"version\": 2"));
  EXPECT_THAT(print_manifest(example()), ::testing::Not(HasSubstr("shared_in")));
}

TEST(Manifest, TellsWhoWasLostAndWhen) {
  const Manifest manifest = example_of_survivors();
  EXPECT_EQ(again(manifest), manifest);
  EXPECT_EQ(manifest.lost(), std::vector<int>{1});
  EXPECT_EQ(manifest.with_everything(), (std::vector<int>{0, 2}));
  EXPECT_THAT(print_manifest(manifest),
              ::testing::AllOf(HasSubstr("\"version\": 3"), HasSubstr("\"lost\": [\n  1\n ]"),
                               HasSubstr("\"lost_at\": 1767323045.25")));
  EXPECT_THAT(print_manifest(example()), ::testing::Not(HasSubstr("lost")));
}

// Of a version that did not note it.
TEST(Manifest, NeedNotKnowWhenAWorkerWasLost) {
  Manifest manifest = example_of_survivors();
  manifest.lost_at.reset();
  EXPECT_EQ(again(manifest), manifest);
}

// Nothing else would have this time.
TEST(Manifest, HasNoTimeOfALossWhereNobodyWasLost) {
  Manifest manifest = example();
  manifest.lost_at = 1;
  EXPECT_EQ(again(manifest), example());
}

TEST(Manifest, NamesFilesByRank) {
  EXPECT_EQ(replica_file_name(0), "rank-0000.safetensors");
  EXPECT_EQ(replica_file_name(37), "rank-0037.safetensors");
  EXPECT_EQ(replica_file_name(12345), "rank-12345.safetensors");
  EXPECT_THAT(replica_file_name(std::numeric_limits<std::int64_t>::max()),
              HasSubstr("9223372036854775807.safetensors"));
}

}  // namespace
}  // namespace decent
