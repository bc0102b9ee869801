// The files of predictions, byte by byte; tests/cli/test_predict.py reads them with numpy and
// others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/core/zip.h"
#include "decent/report/predictions/formats.h"
#include "decent/report/predictions/utf8.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::vector<float> kOutput = {0.1F, -2, 1e-9F, std::numeric_limits<float>::quiet_NaN()};
const std::vector<std::int64_t> kClasses = {1, 0};
const std::vector<float> kProbability = {0.75F, 1};

// Two samples of two scores each.
PredictionBatch two_samples(std::int64_t first) {
  return {.rows = {first, first + 1},
          .files = {"a,b.png", "c\"d.png"},
          .output = {.shape = {2, 2}, .values = kOutput},
          .classes = BatchColumn<std::int64_t>{.shape = {2}, .values = kClasses},
          .probability = BatchColumn<float>{.shape = {2}, .values = kProbability}};
}

class Predictions : public ::testing::Test {
 protected:
  std::filesystem::path write(const char* name, const std::vector<PredictionBatch>& batches,
                              const std::vector<std::string>& names = {}) {
    const std::filesystem::path path = folder_ / name;
    const auto file = find_prediction_format(path)->open(path, names);
    for (const PredictionBatch& batch : batches) file->add(batch);
    EXPECT_FALSE(std::filesystem::exists(path));
    file->finish();
    return path;
  }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Predictions, OfATableHaveAColumnForEachNumber) {
  EXPECT_EQ(read_text(write("p.csv", {two_samples(0), two_samples(5)}, {"cat", "a \"dog\""})),
            "row,file,class,probability,output_0,output_1\n"
            "0,\"a,b.png\",\"a \"\"dog\"\"\",0.75,0.1,-2\n"
            "1,\"c\"\"d.png\",cat,1,1e-09,nan\n"
            "5,\"a,b.png\",\"a \"\"dog\"\"\",0.75,0.1,-2\n"
            "6,\"c\"\"d.png\",cat,1,1e-09,nan\n");
}

TEST_F(Predictions, OfPlacesHaveNumberedClassesInATable) {
  const std::vector<std::int64_t> classes = {2, 0, 1, 1};
  const std::vector<float> probability = {0.5F, 0.25F, 1, 1};
  const PredictionBatch batch{
      .rows = {3, 4},
      .file_rows = {0, 1},
      .output = {.shape = {2, 1, 2}, .values = kOutput},
      .classes = BatchColumn<std::int64_t>{.shape = {2, 2}, .values = classes},
      .probability = BatchColumn<float>{.shape = {2, 2}, .values = probability}};
  EXPECT_EQ(read_text(write("p.csv", {batch})),
            "row,file_row,class_0,class_1,probability_0,probability_1,output_0,output_1\n"
            "3,0,2,0,0.5,0.25,0.1,-2\n"
            "4,1,1,1,1,1,1e-09,nan\n");
  EXPECT_EQ(read_text(write("p.jsonl", {batch}, {"x"})),
            "{\"row\":3,\"file_row\":0,\"class\":[2,\"x\"],\"probability\":[0.5,0.25],"
            "\"output\":[[0.1,-2]]}\n"
            "{\"row\":4,\"file_row\":1,\"class\":[1,1],\"probability\":[1,1],"
            "\"output\":[[1e-09,null]]}\n");
}

TEST_F(Predictions, OfNumbersHaveNoClasses) {
  const PredictionBatch batch{.rows = {0, 1, 2, 3}, .output = {.shape = {4}, .values = kOutput}};
  EXPECT_EQ(read_text(write("p.csv", {batch})), "row,output_0\n0,0.1\n1,-2\n2,1e-09\n3,nan\n");
  EXPECT_THAT(read_text(write("p.jsonl", {batch})), HasSubstr("{\"row\":1,\"output\":-2}\n"));
}

TEST_F(Predictions, InJsonLinesEscapeTexts) {
  PredictionBatch batch = two_samples(0);
  batch.files = {"a\nb\"", "\xFFz"};
  EXPECT_THAT(read_text(write("p.jsonl", {batch}, {"caf\xC3\xA9"})),
              HasSubstr("{\"row\":1,\"file\":\"\xEF\xBF\xBDz\",\"class\":\"caf\xC3\xA9\","));
  EXPECT_THAT(read_text(folder_ / "p.jsonl"), HasSubstr("\"file\":\"a\\nb\\\"\",\"class\":1,"));
}

TEST_F(Predictions, InSafetensorsHaveTheirTextsBesideThem) {
  const auto path = write("p.safetensors", {two_samples(0), two_samples(2)}, {"cat", "dog"});
  const MappedFile file(path);
  const Safetensors read = parse_safetensors(file.bytes(), "p");
  ASSERT_THAT(read.tensors, SizeIs(4));
  EXPECT_THAT(read.find("output")->shape, ElementsAre(4, 2));
  EXPECT_THAT(read.find("class")->shape, ElementsAre(4));
  EXPECT_EQ(read.find("class")->dtype, DType::int64);
  EXPECT_EQ(read.find("probability")->dtype, DType::float32);
  EXPECT_THAT(read.find("row")->shape, ElementsAre(4));
  EXPECT_EQ(read.metadata.at("class_names"), "[\"cat\",\"dog\"]");
  EXPECT_EQ(read.metadata.at("file"), "[\"a,b.png\",\"c\\\"d.png\",\"a,b.png\",\"c\\\"d.png\"]");
}

TEST_F(Predictions, InSafetensorsLeaveOutLongLists) {
  PredictionBatch batch = two_samples(0);
  batch.files = {std::string(1 << 19, 'a'), std::string(1 << 19, 'b')};
  const MappedFile file(write("p.safetensors", {batch}));
  EXPECT_THAT(parse_safetensors(file.bytes(), "p").metadata, SizeIs(0));
}

TEST_F(Predictions, InNpzAreAWholeArchive) {
  const MappedFile file(write("p.npz", {two_samples(0)}, {"cat", "d\xC3\xB6g!"}));
  std::map<std::string, std::string> content;
  for (const ZipEntry& entry : read_zip(file.bytes(), "p")) {
    check_stored(entry, "p");
    content[std::string(entry.name)] = {reinterpret_cast<const char*>(entry.data.data()),
                                        entry.data.size()};
  }
  ASSERT_THAT(content, SizeIs(6));
  const std::string& names = content.at("class_names.npy");
  EXPECT_THAT(names, HasSubstr("'descr': '<U4', 'fortran_order': False, 'shape': (2, )"));
  EXPECT_EQ(names.substr(names.size() - 32),
            std::string(reinterpret_cast<const char*>(std::u32string(U"cat").c_str()), 16) +
                std::string(reinterpret_cast<const char*>(U"d\u00F6g!"), 16));
  EXPECT_THAT(content.at("output.npy"),
              HasSubstr("'<f4', 'fortran_order': False, 'shape': (2, 2, "));
  EXPECT_EQ(content.at("class.npy").size() % 64, 16U);  // two elements behind a header
}

TEST_F(Predictions, OfOtherExtentsAreRefusedByArraysAndTables) {
  const PredictionBatch longer{.rows = {2}, .output = {.shape = {1, 4}, .values = kOutput}};
  const PredictionBatch batch{.rows = {0, 1}, .output = {.shape = {2, 2}, .values = kOutput}};
  for (const char* name : {"p.csv", "p.npz", "p.safetensors"}) {
    EXPECT_THAT(testing::refusal([&] {
                  write(name, {batch, longer});
                }),
                HasSubstr("shapes [2] and [4]"));
  }
  EXPECT_EQ(files(), 0U);
  write("p.jsonl", {batch, longer});
  EXPECT_EQ(files(), 1U);
}

const std::vector<std::int64_t> kFour = {0, 1, 2, 3};

// Two masks of 1 by 2 pixels.
PredictionBatch two_masks(const std::vector<std::int64_t>& classes) {
  return {.rows = {0, 1},
          .files = {"a/x.webp", "b.jpg"},
          .output = {.shape = {2, 1, 2}, .values = kOutput},
          .classes = BatchColumn<std::int64_t>{.shape = {2, 1, 2}, .values = classes},
          .probability = BatchColumn<float>{.shape = {2, 1, 2}, .values = kOutput}};
}

// tests/cli/test_segmentation.py reads them.
TEST_F(Predictions, OfPixelsAreAFolderOfMasks) {
  const std::vector<std::int64_t> classes = {0, 255, 1, 1};
  const PredictionBatch batch = two_masks(classes);
  const auto path = write("p/", {batch});
  EXPECT_TRUE(std::filesystem::is_regular_file(path / "a/x.png"));
  EXPECT_TRUE(std::filesystem::is_regular_file(path / "b.png"));
  PredictionBatch without_names = batch;
  without_names.files = {};
  EXPECT_TRUE(std::filesystem::is_regular_file(write("q/", {without_names}) / "1.png"));
  EXPECT_EQ(files(), 2U);
}

// The program refuses such a folder before it predicts.
TEST_F(Predictions, OfPixelsReplaceNoFolderThatHasMasks) {
  const PredictionBatch batch = two_masks(kFour);
  const auto path = write("p/", {batch});
  auto file = find_prediction_format(path)->open(path, {});
  file->add(batch);
  EXPECT_THROW(file->finish(), WriteError);
  file.reset();
  EXPECT_TRUE(std::filesystem::is_regular_file(path / "b.png"));
  EXPECT_EQ(files(), 1U);
}

TEST_F(Predictions, AreRefusedAsMasks) {
  const std::vector<std::int64_t> classes = {0, 1, 256, 1};
  const auto refused = [&](const PredictionBatch& batch) {
    return testing::refusal([&] { write("p/", {batch}); });
  };
  EXPECT_THAT(refused(two_masks(classes)), HasSubstr("p/': the output has class 256"));
  EXPECT_THAT(refused(two_samples(0)), HasSubstr("the classes of a sample are []"));
  EXPECT_THAT(refused({.rows = {0, 1}, .output = {.shape = {2, 2}, .values = kOutput}}),
              HasSubstr("masks need a loss with classes or events"));
  PredictionBatch batch = two_masks(kFour);
  batch.files = {"a.png", "a.jpg"};
  EXPECT_THAT(refused(batch), HasSubstr("two images would have the mask 'a.png'"));
  batch.files = {"a/../../b.png", "a.jpg"};
  EXPECT_THAT(refused(batch), HasSubstr("the image 'a/../../b.png' is not in the folder"));
  EXPECT_EQ(files(), 0U);
}

TEST_F(Predictions, NeedAFolder) {
  for (const PredictionFormat& format : prediction_formats()) {
    const auto path = folder_.path() / "no" / ("p" + std::string(format.extension));
    EXPECT_THROW(format.open(path, {}), WriteError);
  }
}

TEST(Utf8, BrokenBytesAreReplacedOneByOne) {
  EXPECT_EQ(code_points("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"), U"a\u00E4\u20AC\U0001F600");
  EXPECT_EQ(code_points("\xC3"), U"\uFFFD");
  EXPECT_EQ(code_points("\xC3z"), U"\uFFFDz");
  EXPECT_EQ(code_points("\xC0\x80"), U"\uFFFD\uFFFD");            // longer than need be
  EXPECT_EQ(code_points("\xED\xA0\x80"), U"\uFFFD\uFFFD\uFFFD");  // half of a pair
  EXPECT_EQ(code_points("\xF8"), U"\uFFFD");
}

}  // namespace
}  // namespace decent
