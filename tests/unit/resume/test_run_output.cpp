#include "decent/resume/run_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "../support/teams.h"
#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/core/file.h"
#include "decent/runfolder/run_folder.h"
#include "saved_checkpoints.h"

namespace decent {
namespace {

using testing::save_checkpoint;
using testing::TemporaryFolder;
using Steps = std::vector<std::int64_t>;

constexpr const char* kLines =
    "{\"type\": \"train\", \"step\": 5}\n{\"type\": \"train\", \"step\": 10}\n"
    "{\"type\": \"train\", \"step\": 15}\n";

// The output folder of one worker's run with checkpoints of steps 5, 10 and 15.
class RunOutputTest : public ::testing::Test {
 protected:
  RunOutputTest() {
    recipe_.output = place_ / "run";
    for (const std::int64_t step : {5, 10, 15}) save_checkpoint(checkpoints(), step, "a");
    write_file(folder().metrics(), kLines);
  }

  RunFolder folder() const { return RunFolder(recipe_.output); }
  CheckpointFolder checkpoints() const { return CheckpointFolder(folder().checkpoints()); }
  ResumeContext context() { return {.team = team_, .recipe = recipe_, .log = log_}; }
  FoundCheckpoint found(std::int64_t step) const {
    FoundCheckpoint start;
    start.folder = checkpoints().path_of(step);
    start.manifest.step = step;
    return start;
  }

  TemporaryFolder place_;
  Recipe recipe_;
  World world_{Launch{}, {}};
  Team team_ = testing::team_of(world_);
  Log log_{0, Verbosity::quiet};
};

TEST_F(RunOutputTest, ResumingLeavesOneRunUpToOneStep) {
  const FoundCheckpoint start = found(10);
  const RunOutput output = open_output(context(), &start, RunBegins::resuming);
  EXPECT_EQ(output.leaders.all(), std::set<int>{0});
  EXPECT_TRUE(output.holds_checkpoint);
  EXPECT_EQ(checkpoints().steps(), (Steps{10, 5}));
  EXPECT_TRUE(std::filesystem::exists(folder().checkpoints() / "set-aside" / checkpoint_name(15)));
  EXPECT_THAT(read_text(folder().metrics()),
              ::testing::AllOf(::testing::HasSubstr("\"step\": 10"),
                               ::testing::Not(::testing::HasSubstr("\"step\": 15"))));
}

// The lines of steps that come again are the same: nobody misses them.
TEST_F(RunOutputTest, ResumingAfterACrashKeepsNoCopyOfMetrics) {
  const FoundCheckpoint start = found(10);
  open_output(context(), &start, RunBegins::resuming);
  EXPECT_FALSE(std::filesystem::exists(folder().path() / "set-aside"));
}

TEST_F(RunOutputTest, GoingBackKeepsTheMetricsOfTheWayLeft) {
  const FoundCheckpoint start = found(10);
  open_output(context(), &start, RunBegins::going_back);
  EXPECT_EQ(read_text(folder().path() / "set-aside" / "1" / "metrics.jsonl"), kLines);
}

TEST_F(RunOutputTest, AnotherRunsCheckpointIsNotOneOfThisFolder) {
  FoundCheckpoint start = found(10);
  start.folder = place_ / "elsewhere";
  const RunOutput output = open_output(context(), &start, RunBegins::resuming);
  EXPECT_FALSE(output.holds_checkpoint);
  EXPECT_EQ(checkpoints().steps(), (Steps{5}));  // the one of step 10 is another one
}

// The other machine of the run gave the checkpoint its name, this one was killed before it could.
TEST_F(RunOutputTest, ACheckpointThatOthersHaveGetsItsName) {
  const CheckpointFolder folder = checkpoints();
  const Manifest manifest =
      parse_manifest(read_text(folder.path_of(15) / kManifestName), kManifestName);
  std::filesystem::rename(folder.path_of(15), folder.writing_path_of(15));
  FoundCheckpoint start = found(15);
  start.manifest = manifest;
  const RunOutput output = open_output(context(), &start, RunBegins::resuming);
  EXPECT_TRUE(output.holds_checkpoint);
  EXPECT_EQ(folder.steps(), (Steps{15, 10, 5}));
}

TEST_F(RunOutputTest, WhatWasBeingWrittenIsRemoved) {
  checkpoints().begin(20);
  const std::filesystem::path marker = folder().path() / ".worker-3-0123456789abcdef";
  write_file(marker, "");
  tidy_checkpoints(context());
  EXPECT_FALSE(std::filesystem::exists(checkpoints().writing_path_of(20)));
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(RunOutputTest, TidyKeepsWhatTheRecipeKeeps) {
  recipe_.checkpoint.keep = 2;
  tidy_checkpoints(context());
  EXPECT_EQ(checkpoints().steps(), (Steps{15, 10}));
}

TEST_F(RunOutputTest, IsCompleteOnceThereIsAModelOfTheLastStep) {
  const FoundCheckpoint last = found(15);
  EXPECT_FALSE(is_complete(context(), &last, 15, false));
  write_file(
      folder().metrics(),
      std::string(kLines) + "{\"type\": \"end\", \"step\": 15, \"status\": \"completed\"}\n");
  EXPECT_FALSE(is_complete(context(), &last, 15, false));
  write_file(folder().model(), "");
  EXPECT_TRUE(is_complete(context(), &last, 15, false));
  EXPECT_FALSE(is_complete(context(), &last, 20, false));  // the recipe asks for more now
  EXPECT_FALSE(is_complete(context(), nullptr, 20, true));
  const FoundCheckpoint earlier = found(10);
  EXPECT_FALSE(is_complete(context(), &earlier, 15, false));  // the user goes back
}

TEST(FolderSharing, FindsWhoSeesTheSameFolder) {
  const TemporaryFolder place;
  testing::run_worlds(3, [&](World& world) {
    const int rank = world.launch().rank;
    const std::filesystem::path own = place / (rank == 1 ? "own" : "shared");
    const std::vector<int> sharing = workers_sharing(testing::team_of(world), own);
    EXPECT_EQ(sharing, rank == 1 ? std::vector<int>{1} : (std::vector<int>{0, 2}));
    EXPECT_TRUE(world.launch().rank != 1 || std::filesystem::is_empty(own));
  });
}

}  // namespace
}  // namespace decent
