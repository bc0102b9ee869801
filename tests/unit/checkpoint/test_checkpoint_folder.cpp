#include "decent/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "manifests.h"

namespace decent {
namespace {

using testing::example;
using Names = std::set<std::string>;
using Steps = std::vector<std::int64_t>;

// Everything below a folder.
Names names_in(const std::filesystem::path& folder) {
  Names names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    names.insert(entry.path().lexically_relative(folder).string());
  }
  return names;
}

class CheckpointFolderTest : public ::testing::Test {
 protected:
  // A folder with one file.
  void make(const std::string& name, const std::string& content = "x") const {
    create_folders(folder_.path() / name);
    write_file(folder_.path() / name / "file", content);
  }

  void save(std::int64_t step, const std::string& content = "replica") const {
    write_file(checkpoints_.begin(step) / "rank-0000.safetensors", content);
    checkpoints_.publish(example(step));
  }

  std::string text(const std::string& file) const { return read_text(folder_.path() / file); }
  Names names() const { return names_in(folder_.path()); }

  testing::TemporaryFolder folder_;
  CheckpointFolder checkpoints_{folder_.path()};
};

// ---- names --------------------------------------------------------------------------------------

TEST(CheckpointName, HoldsTheStep) {
  EXPECT_EQ(checkpoint_name(0), "step-00000000");
  EXPECT_EQ(checkpoint_name(500), "step-00000500");
  EXPECT_EQ(checkpoint_name(99'999'999), "step-99999999");
  EXPECT_EQ(checkpoint_name(123'456'789), "step-123456789");
  EXPECT_EQ(checkpoint_name(INT64_MAX), "step-9223372036854775807");
}

TEST(CheckpointName, GivesTheStepBack) {
  for (std::int64_t step : {std::int64_t{0}, std::int64_t{1}, std::int64_t{99'999'999},
                            std::int64_t{100'000'000}, std::int64_t{INT64_MAX}}) {
    EXPECT_EQ(step_in_name(checkpoint_name(step)), step);
  }
}

TEST(CheckpointName, HasOneFormOnly) {
  for (const char* name :
       {"", "step", "step-", "step-1", "step-0000001", "step-000000001", "step-0000000a",
        "step-00000001 ", " step-00000001", "step-+0000001", "step--0000001", "step-00000001.2",
        "Step-00000001", "00000001", ".step-00000001.writing", "step-9223372036854775808",
        "step-99999999999999999999999"}) {
    EXPECT_EQ(step_in_name(name), -1) << name;
  }
}

// ---- what is there ------------------------------------------------------------------------------

// A checkpoint that cannot be read, because of damage or a later format, is skipped.
TEST_F(CheckpointFolderTest, ShowsTheManifestsThatCanBeRead) {
  for (const std::int64_t step : {100, 200, 300, 400}) save(step);
  const auto manifest = [&](std::int64_t step) {
    return checkpoints_.path_of(step) / kManifestName;
  };
  write_file(manifest(200), read_text(manifest(200)) + "more");
  std::filesystem::remove(manifest(300));
  make("step-00000500");
  Steps seen;
  checkpoints_.visit_manifests([&](std::int64_t step, const Manifest& read) {
    EXPECT_EQ(read, example(step));
    seen.push_back(step);
  });
  EXPECT_EQ(seen, (Steps{400, 100}));
}

TEST_F(CheckpointFolderTest, LetsErrorsOfAVisitorThrough) {
  save(100);
  EXPECT_THROW(checkpoints_.visit_manifests(
                   [](std::int64_t, const Manifest&) { throw WriteError("disk full"); }),
               WriteError);
}

TEST_F(CheckpointFolderTest, ListsStepsFromTheHighest) {
  for (const char* name : {"step-00000008", "step-100000000", "step-00000100", "step-00000000"}) {
    make(name);
  }
  EXPECT_EQ(checkpoints_.steps(), Steps({100'000'000, 100, 8, 0}));
}

TEST_F(CheckpointFolderTest, ListsNothingElse) {
  for (const char* name : {".step-00000008.writing", ".step-00000004.removing", "set-aside",
                           "set-aside/step-00000012", "step-12", "step-00000016.2", "notes"}) {
    make(name);
  }
  EXPECT_EQ(checkpoints_.steps(), Steps());
}

TEST_F(CheckpointFolderTest, NeedsNotExist) {
  const CheckpointFolder missing(folder_ / "missing");
  EXPECT_EQ(missing.steps(), Steps());
  missing.clear_leftovers();
  missing.discard(4);
  EXPECT_EQ(names(), Names());  // looking writes nothing
}

// ---- saving -------------------------------------------------------------------------------------

TEST_F(CheckpointFolderTest, ShowsACheckpointOnlyOnceItIsWhole) {
  const std::filesystem::path place = checkpoints_.begin(4);
  EXPECT_EQ(place, folder_ / ".step-00000004.writing");
  write_file(place / "rank-0000.safetensors", "replica");
  EXPECT_EQ(checkpoints_.begin(4), place);  // another worker
  write_file(place / "rank-0001.safetensors", "other replica");
  EXPECT_EQ(checkpoints_.steps(), Steps());
  checkpoints_.publish(example(4));
  EXPECT_EQ(checkpoints_.path_of(4), folder_ / "step-00000004");
  EXPECT_EQ(names(),
            Names({"step-00000004", "step-00000004/manifest.json",
                   "step-00000004/rank-0000.safetensors", "step-00000004/rank-0001.safetensors"}));
  EXPECT_EQ(text("step-00000004/manifest.json"), print_manifest(example(4)));
  EXPECT_EQ(text("step-00000004/rank-0001.safetensors"), "other replica");
}

TEST_F(CheckpointFolderTest, MakesItsFolder) {
  const CheckpointFolder deep(folder_ / "runs/a/checkpoints");
  deep.begin(4);
  deep.publish(example(4));
  EXPECT_EQ(deep.steps(), Steps({4}));
}

TEST_F(CheckpointFolderTest, ReplacesACheckpointOfTheSameStep) {
  make("step-00000004", "old");
  save(8, "later");
  save(4, "new");
  EXPECT_EQ(names(), Names({"step-00000004", "step-00000004/manifest.json",
                            "step-00000004/rank-0000.safetensors", "step-00000008",
                            "step-00000008/manifest.json", "step-00000008/rank-0000.safetensors"}));
  EXPECT_EQ(text("step-00000004/rank-0000.safetensors"), "new");
  EXPECT_EQ(text("step-00000008/rank-0000.safetensors"), "later");
}

TEST_F(CheckpointFolderTest, AddsAnEvaluationToAManifest) {
  Manifest manifest = example();
  manifest.metrics = {};
  manifest.evaluation_pending = true;
  checkpoints_.begin(manifest.step);
  checkpoints_.publish(manifest);
  checkpoints_.note_evaluation(manifest.step, {{"loss", 0.5}}, {{"stop.loss.best", 0.5}});
  manifest.metrics = {{"loss", 0.5}};
  manifest.evaluations = {{"stop.loss.best", 0.5}};
  manifest.evaluation_pending = false;
  const std::filesystem::path file = checkpoints_.path_of(manifest.step) / kManifestName;
  EXPECT_EQ(parse_manifest(read_text(file), "manifest"), manifest);
}

TEST_F(CheckpointFolderTest, PublishesNothingThatWasNotBegun) {
  make("step-00000004", "old");
  EXPECT_THROW(checkpoints_.publish(example(4)), WriteError);
  EXPECT_EQ(text("step-00000004/file"), "old");
}

TEST_F(CheckpointFolderTest, DiscardsWhatWasBegun) {
  save(4);
  const Names before = names();
  write_file(checkpoints_.begin(8) / "rank-0000.safetensors", "replica");
  write_file(checkpoints_.begin(4) / "rank-0000.safetensors", "replica");
  checkpoints_.discard(8);
  checkpoints_.discard(4);
  checkpoints_.discard(12);
  EXPECT_EQ(names(), before);
}

// ---- removing -----------------------------------------------------------------------------------

TEST_F(CheckpointFolderTest, RemovesOneCheckpoint) {
  for (std::int64_t step : {4, 8, 12}) save(step);
  make(".step-00000008.removing");
  checkpoints_.remove(8);
  EXPECT_EQ(checkpoints_.steps(), Steps({12, 4}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".step-00000008.removing"));
  EXPECT_THROW(checkpoints_.remove(8), WriteError);
  EXPECT_EQ(checkpoints_.steps(), Steps({12, 4}));
}

TEST_F(CheckpointFolderTest, SetsAsideUnderTheNameOrTheNextThatIsFree) {
  for (const char* content : {"first", "second", "third"}) {
    save(4, "stays");
    make("step-00000008", content);
    const std::filesystem::path place = checkpoints_.set_aside(8);
    EXPECT_EQ(read_text(place / "file"), content);
    EXPECT_EQ(checkpoints_.steps(), Steps({4}));
  }
  EXPECT_EQ(text("set-aside/step-00000008/file"), "first");
  EXPECT_EQ(text("set-aside/step-00000008.2/file"), "second");
  EXPECT_EQ(text("set-aside/step-00000008.3/file"), "third");
}

// rename replaces an empty folder without a word.
TEST_F(CheckpointFolderTest, SetsAsideBesideAnEmptyFolder) {
  create_folders(folder_ / "set-aside/step-00000008");
  make("step-00000008");
  EXPECT_EQ(checkpoints_.set_aside(8), folder_ / "set-aside/step-00000008.2");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "set-aside/step-00000008"));
}

TEST_F(CheckpointFolderTest, SetsNothingAsideThatIsNotThere) {
  EXPECT_THROW(checkpoints_.set_aside(8), WriteError);
  EXPECT_EQ(checkpoints_.steps(), Steps());
}

// ---- after a program that was killed
// --------------------------------------------------------------

TEST_F(CheckpointFolderTest, ClearsLeftoversAndTouchesNothingElse) {
  const std::vector<std::string> others = {"step-00000004",
                                           "set-aside/step-00000008",
                                           "set-aside/.step-00000008.writing",
                                           "step-00000012/.step-00000012.writing",
                                           ".writing",
                                           ".removing",
                                           ".step-4.writing",
                                           ".step-00000004",
                                           ".step-00000004.writing.bak",
                                           ".step-00000004.2.writing",
                                           ".step-00000004writing",
                                           "step-00000004.writing",
                                           "..step-00000004.removing",
                                           ".notes"};
  for (const std::string& name : others) make(name);
  const Names before = names();
  make(".step-00000004.writing");
  make(".step-00000008.removing/deep");
  make(".step-123456789.writing");
  const std::filesystem::path manifest = folder_ / "step-00000004/manifest.json.0123abcd.tmp";
  write_file(manifest, "a part");
  write_file(folder_ / ".step-00000012.writing", "a file");
  checkpoints_.clear_leftovers();
  EXPECT_EQ(names(), before);
  EXPECT_FALSE(std::filesystem::exists(manifest));
  for (const std::string& name : others) EXPECT_EQ(text(name + "/file"), "x");
  checkpoints_.clear_leftovers();
  EXPECT_EQ(names(), before);
}

}  // namespace
}  // namespace decent
