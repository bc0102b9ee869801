// From where the workers of a run that resumes start.

#include "decent/resume/starting_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../support/teams.h"
#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/resume/topics.h"
#include "decent/runfolder/run_folder.h"
#include "methods.h"
#include "saved_checkpoints.h"

namespace decent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::kMethods;
using ::testing::Not;
using testing::save_checkpoint;
using testing::TemporaryFolder;

struct Start {
  BeginWith with = BeginWith::own;
  std::vector<std::string> lines;
};

// Of two workers that resume the only checkpoint in `output`.
Start start_in(const std::filesystem::path& output, const std::string& method, bool near) {
  Start start;
  testing::run_worlds(2, [&](World& world) {
    const int rank = world.launch().rank;
    Recipe recipe;
    recipe.output = output;
    recipe.checkpoint.allow_missing = true;
    Log log(rank, Verbosity::quiet);
    config::Names names;
    names.methods = kMethods;
    const ResumingRun run{.facts = {{"parallel.method", method}, {kRatesTopic, "constant"}},
                          .workers = 2,
                          .names = names,
                          .copies_alike = method == "all_reduce",
                          .needs_near_copies = near};
    auto found = find_start({.team = testing::team_of(world), .recipe = recipe, .log = log}, "auto",
                            "fresh", run);
    if (rank != 0) return;
    found->beginning = beginning_of(found->checkpoint, run);
    start = {.with = found->beginning.with, .lines = resume_lines(*found, 20)};
  });
  return start;
}

class StartingPointTest : public ::testing::Test {
 protected:
  std::filesystem::path output() const { return place_.path() / "run"; }
  CheckpointFolder checkpoints() const {
    return CheckpointFolder(RunFolder(output()).checkpoints());
  }
  Start start(const std::string& method, bool near = false) const {
    return start_in(output(), method, near);
  }

 private:
  TemporaryFolder place_;
};

const auto kBecomeAlike = Contains(HasSubstr("from now on their copies are alike"));

TEST_F(StartingPointTest, IsEachWorkersOwnReplica) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  EXPECT_EQ(start("gossip").with, BeginWith::own);
}

TEST_F(StartingPointTest, IsTheAverageWhereCopiesBecomeAlike) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  const Start alike = start("all_reduce");
  EXPECT_EQ(alike.with, BeginWith::average_of_replicas);
  EXPECT_THAT(alike.lines, kBecomeAlike);
  EXPECT_THAT(alike.lines, Contains("changed since: parallel.method was gossip, is all_reduce"));
}

TEST_F(StartingPointTest, IsWhatWasSavedWhereCopiesWereAlike) {
  save_checkpoint(checkpoints(), 10, "a", 2, /*copies_alike=*/true);
  for (const std::string method : {"gossip", "all_reduce"}) {
    EXPECT_EQ(start(method).with, BeginWith::own) << method;
    EXPECT_THAT(start(method).lines, Not(kBecomeAlike));
  }
}

// One line says why all start from the average.
TEST_F(StartingPointTest, IsTheAverageOfAnotherNumberOfReplicas) {
  save_checkpoint(checkpoints(), 10, "a", 3);
  const Start other = start("all_reduce");
  EXPECT_EQ(other.with, BeginWith::average_of_replicas);
  EXPECT_THAT(other.lines, Contains(HasSubstr("the checkpoint is of 3 workers, this run has 2")));
  EXPECT_THAT(other.lines, Not(kBecomeAlike));
}

TEST_F(StartingPointTest, IsTheAverageOfTheReplicasThatAreLeft) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  std::filesystem::remove(checkpoints().path_of(10) / replica_file_name(1));
  EXPECT_EQ(start("gossip").with, BeginWith::average_of_replicas);
}

// The checkpoint has no learning rates, so that copies are not known to be near.
TEST_F(StartingPointTest, IsTheAverageOfWeightsWhereAnExchangeNeedsThemNear) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  const Start near = start("gossip", /*near=*/true);
  EXPECT_EQ(near.with, BeginWith::average_of_weights);
  EXPECT_THAT(near.lines, Contains(HasSubstr("start from the average of their weights")));
}

// ---- other workers ----------------------------------------------------------------------------

// Of `workers`, without those that were lost 90 s before the time 1000.
Manifest manifest_without(const std::vector<int>& lost, int workers) {
  Manifest manifest;
  manifest.step = 50;
  manifest.world_size = workers;
  for (int rank = 0; rank < workers; ++rank)
    manifest.files.push_back({.name = replica_file_name(rank), .checksum = ""});
  for (const int rank : lost) manifest.files[static_cast<std::size_t>(rank)] = {};
  if (!lost.empty()) manifest.lost_at = 910;
  return manifest;
}

TEST(ChangeOfWorkers, IsNoneWhereTheSameOnesGoOn) {
  EXPECT_EQ(change_of_workers(manifest_without({}, 4), 4, 1000), std::nullopt);
}

TEST(ChangeOfWorkers, IsOneOfTheirNumber) {
  for (const int workers : {3, 5}) {
    const auto change = change_of_workers(manifest_without({}, 4), workers, 1000);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->step, 50);
    EXPECT_EQ(change->workers, workers);
    EXPECT_EQ(change->before, 4);
    EXPECT_EQ(change->lost, std::vector<int>());
    EXPECT_EQ(change->pause_s, std::nullopt);
  }
}

// With as many workers as before, too: another one is in its place.
TEST(ChangeOfWorkers, IsALossAndSinceWhen) {
  for (const int workers : {2, 4}) {
    const auto change = change_of_workers(manifest_without({0, 2}, 4), workers, 1000);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->workers, workers);
    EXPECT_EQ(change->lost, (std::vector<int>{0, 2}));
    EXPECT_EQ(change->pause_s, 90.0);
  }
}

TEST(ChangeOfWorkers, IsNotBeforeTheLossWhereClocksDiffer) {
  EXPECT_EQ(change_of_workers(manifest_without({1}, 2), 1, 900)->pause_s, 0.0);
}

}  // namespace
}  // namespace decent
