#include "decent/resume/starting_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "saved_checkpoints.h"

namespace decent {
namespace {

using testing::save_checkpoint;
using testing::TemporaryFolder;

const std::string kRecipe = "name: a\n";

// A checkpoint of `run` in a folder of its own.
FoundCheckpoint found_in(const RunFolder& folder, std::int64_t step, const std::string& run) {
  const CheckpointFolder checkpoints(folder.checkpoints());
  FoundCheckpoint found;
  found.manifest = save_checkpoint(checkpoints, step, run);
  found.folder = checkpoints.path_of(step);
  return found;
}

TEST(RunIdentity, IsTheIdInTheCheckpoints) {
  const TemporaryFolder place;
  const RunFolder mine(place / "mine");
  const RunFolder other(place / "other");
  found_in(mine, 10, "a");
  EXPECT_TRUE(is_of_run(found_in(other, 20, "a"), mine));  // copied elsewhere
  EXPECT_FALSE(is_of_run(found_in(other, 30, "b"), mine));
}

TEST(RunIdentity, WithoutIdsIsThePlace) {
  const TemporaryFolder place;
  const RunFolder mine(place / "mine");
  const FoundCheckpoint own = found_in(mine, 10, "");
  EXPECT_TRUE(is_of_run(own, mine));
  EXPECT_FALSE(is_of_run(own, RunFolder(place / "other")));
}

TEST(RunIdentity, WithoutIdsIsTheRecipe) {
  const TemporaryFolder place;
  const RunFolder mine(place / "mine");
  FoundCheckpoint found = found_in(RunFolder(place / "other"), 10, "");
  found.manifest.recipe = "name: a\n";
  std::filesystem::create_directories(mine.path());
  write_file(mine.recipe(), "name: b\n");
  EXPECT_FALSE(is_of_run(found, mine));
  write_file(mine.recipe(), "name: a\n");
  EXPECT_TRUE(is_of_run(found, mine));
}

TEST(RunIdentity, ANewFolderBeginsANewRun) {
  const TemporaryFolder place;
  const FoundCheckpoint found = found_in(RunFolder(place / "old"), 10, "a");
  EXPECT_EQ(resumed_run_id(found, RunFolder(place / "new"), kRecipe, "fresh"), "fresh");
}

TEST(RunIdentity, TheSameFolderContinuesItsRun) {
  const TemporaryFolder place;
  const RunFolder mine(place / "mine");
  EXPECT_EQ(resumed_run_id(found_in(mine, 10, "a"), mine, kRecipe, "fresh"), "a");
}

TEST(RunIdentity, AFolderWithAnotherRunIsRefused) {
  const TemporaryFolder place;
  const RunFolder mine(place / "mine");
  found_in(mine, 10, "a");
  const FoundCheckpoint other = found_in(RunFolder(place / "other"), 10, "b");
  EXPECT_THAT(testing::refusal([&] { resumed_run_id(other, mine, kRecipe, "fresh"); }),
              ::testing::AllOf(::testing::HasSubstr("is of another run"),
                               ::testing::HasSubstr("--set output=DIR")));
}

TEST(RunIdentity, ARunThatSavedNothingBeginsAgain) {
  const TemporaryFolder place;
  const RunFolder mine(place / "mine");
  const FoundCheckpoint other = found_in(RunFolder(place / "other"), 10, "b");
  std::filesystem::create_directories(mine.checkpoints());
  write_file(mine.metrics(), "");
  write_file(mine.recipe(), kRecipe);
  EXPECT_EQ(resumed_run_id(other, mine, kRecipe, "fresh"), "fresh");
  EXPECT_THAT(testing::refusal([&] { resumed_run_id(other, mine, "name: b\n", "fresh"); }),
              ::testing::HasSubstr("is of another run"));
}

}  // namespace
}  // namespace decent
