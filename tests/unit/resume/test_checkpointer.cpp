#include "decent/resume/checkpointer.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "../support/teams.h"
#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::TemporaryFolder;

CheckpointRecipe keep_one(bool background = false) {
  CheckpointRecipe recipe;
  recipe.keep = 1;
  recipe.background = background;
  return recipe;
}

Checkpointer::Progress progress_of(const World& world, std::int64_t step) {
  return {.workers = world.membership(), .step = step, .epoch = 1, .consumed = 64};
}

NamedTensors state_of(double value) {
  return {{"model.w", at::full({3}, value, at::kFloat)},
          {"optimizer.w.step", at::full({}, 1, at::kLong)}};
}

// A checkpoint that was saved; a test fails where there is none.
Manifest manifest_in(const CheckpointFolder& folder, std::int64_t step) {
  const std::filesystem::path file = folder.path_of(step) / kManifestName;
  return parse_manifest(read_text(file), file.string());
}

TEST(Checkpointer, SavesWhatTheManifestSays) {
  const TemporaryFolder run;
  const CheckpointFolder folder(run / "checkpoints");
  World world(Launch{}, {});
  Manifest common;
  common.run = "the run";
  Checkpointer checkpointer({.team = testing::team_of(world),
                             .folder = folder,
                             .recipe = keep_one(),
                             .manifest = common});
  EXPECT_FALSE(checkpointer.take_seconds());
  checkpointer.save(progress_of(world, 10), state_of(1));
  EXPECT_EQ(checkpointer.last_step(), 10);
  EXPECT_TRUE(checkpointer.take_seconds());
  const Manifest manifest = manifest_in(folder, 10);
  EXPECT_EQ(manifest.run, "the run");
  EXPECT_EQ(manifest.world_size, 1);
  EXPECT_EQ(manifest.consumed, 64);
  ASSERT_EQ(manifest.files.size(), 1U);
  EXPECT_EQ(manifest.files[0].bytes,
            std::filesystem::file_size(folder.path_of(10) / manifest.files[0].name));
  checkpointer.save(progress_of(world, 20), state_of(2));
  EXPECT_EQ(folder.steps(), (std::vector<std::int64_t>{20}));  // keep: 1
}

TEST(Checkpointer, GivesEachWorkerTheReplicaOfItsPlace) {
  const TemporaryFolder run;
  const CheckpointFolder folder(run / "checkpoints");
  testing::run_worlds(2, [&](World& world) {
    const int rank = world.launch().rank;
    Checkpointer checkpointer({.team = testing::team_of(world),
                               .leaders = FolderLeaders({0, 0}),
                               .folder = folder,
                               .recipe = keep_one(/*background=*/true)});
    checkpointer.save(progress_of(world, 10), state_of(rank));
    checkpointer.wait();
  });
  const Manifest manifest = manifest_in(folder, 10);
  EXPECT_EQ(manifest.world_size, 2);
  ASSERT_EQ(manifest.files.size(), 2U);
  EXPECT_EQ(manifest.files[1].name, "rank-0001.safetensors");
  EXPECT_NE(manifest.files[0].checksum, manifest.files[1].checksum);
}

// The last one stays until the evaluation of the new one is known.
TEST(Checkpointer, RemovesNothingBeforeAnEvaluation) {
  const TemporaryFolder run;
  const CheckpointFolder folder(run / "checkpoints");
  testing::run_worlds(2, [&](World& world) {
    Checkpointer checkpointer({.team = testing::team_of(world),
                               .leaders = FolderLeaders({0, 0}),
                               .folder = folder,
                               .recipe = keep_one(/*background=*/true)});
    Checkpointer::Progress progress = progress_of(world, 10);
    checkpointer.save(progress, state_of(1));
    progress.step = 20;
    progress.evaluation_pending = true;
    checkpointer.save(progress, state_of(2));
    checkpointer.wait();
    EXPECT_EQ(folder.steps(), (std::vector<std::int64_t>{20, 10}));
    EXPECT_TRUE(manifest_in(folder, 20).evaluation_pending);
    checkpointer.note_evaluation({{"loss", 0.5}}, {{"stop.loss.best", 0.25}});
    checkpointer.wait();
  });
  EXPECT_EQ(folder.steps(), (std::vector<std::int64_t>{20}));
  const Manifest manifest = manifest_in(folder, 20);
  EXPECT_FALSE(manifest.evaluation_pending);
  EXPECT_EQ(manifest.metrics, (Numbers{{"loss", 0.5}}));
  EXPECT_EQ(manifest.evaluations, (Numbers{{"stop.loss.best", 0.25}}));
}

// The failure is thrown where it happened, the other worker goes on; nothing is left of the
// attempt.
TEST(Checkpointer, ThrowsAFailureOnTheWorkerWhosePartItWas) {
  const TemporaryFolder run;
  const CheckpointFolder folder(run / "checkpoints");
  testing::run_worlds(2, [&](World& world) {
    const bool is_second = world.launch().rank == 1;
    bool disk_is_full = is_second;
    Checkpointer checkpointer({.team = testing::team_of(world),
                               .leaders = FolderLeaders({0, 0}),
                               .folder = folder,
                               .recipe = keep_one(),
                               .before_publishing = [&] {
                                 if (disk_is_full) throw WriteError("disk full");
                               }});
    const auto save = [&](std::int64_t step) {
      checkpointer.save(progress_of(world, step), state_of(1));
    };
    if (is_second) {
      EXPECT_THROW(save(10), WriteError);
    } else {
      EXPECT_NO_THROW(save(10));
      EXPECT_TRUE(folder.steps().empty());
      EXPECT_FALSE(std::filesystem::exists(folder.writing_path_of(10)));
    }
    disk_is_full = false;
    EXPECT_NO_THROW(save(20));
  });
  EXPECT_EQ(folder.steps(), (std::vector<std::int64_t>{20}));
}

TEST(Checkpointer, SavesNoParameterThatIsNotFinite) {
  const TemporaryFolder run;
  const CheckpointFolder folder(run / "checkpoints");
  World world(Launch{}, {});
  Checkpointer checkpointer(
      {.team = testing::team_of(world), .folder = folder, .recipe = keep_one()});
  try {
    checkpointer.save(progress_of(world, 10), state_of(std::nan("")));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("parameter 'w' is not finite after step 10"));
  }
  EXPECT_TRUE(folder.steps().empty());
}

}  // namespace
}  // namespace decent
