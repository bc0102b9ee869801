#include "decent/resume/checkpoint_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "../support/teams.h"
#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/resume/local_checkpoints.h"
#include "saved_checkpoints.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::save_checkpoint;
using testing::TemporaryFolder;

std::filesystem::path replica_in(const CheckpointFolder& folder, std::int64_t step, int replica) {
  return folder.path_of(step) / replica_file_name(replica);
}

// What rank 0's search warns of, and its error.
struct Result {
  std::vector<std::string> warnings;
  std::string error;
  std::int64_t step = -1;
  std::vector<int> readers;
};

// Two workers, each of which looks into a folder of its own or into the same.
Result search(const std::filesystem::path& of_first, const std::filesystem::path& of_second,
              bool allow_missing = false) {
  Result result;
  testing::run_worlds(2, [&](World& world) {
    const int rank = world.launch().rank;
    const CheckpointSearch options{.allow_missing = allow_missing,
                                   .warn = [&](const std::string& text) {
                                     if (rank == 0) result.warnings.push_back(text);
                                   }};
    try {
      const auto found = find_newest_checkpoint(testing::team_of(world),
                                                rank == 0 ? of_first : of_second, options);
      if (!found || rank != 0) return;
      result.step = found->manifest.step;
      result.readers = found->readers;
    } catch (const SharedError& error) {
      if (rank == 0) result.error = error.what();
    }
  });
  return result;
}

TEST(CheckpointSearch, TakesTheNewest) {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path());
  save_checkpoint(folder, 10, "a", 2);
  save_checkpoint(folder, 20, "a", 2);
  const Result result = search(folder.path(), folder.path());
  EXPECT_EQ(result.step, 20);
  EXPECT_THAT(result.readers, ElementsAre(0, 1));
  EXPECT_THAT(result.warnings, ::testing::IsEmpty());
}

TEST(CheckpointSearch, NothingIsThereToFind) {
  const TemporaryFolder place;
  const Result result = search(place.path(), place / "absent");
  EXPECT_EQ(result.step, -1);
  EXPECT_EQ(result.error, "");
}

TEST(CheckpointSearch, SkipsADamagedReplicaWithAWarning) {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path());
  save_checkpoint(folder, 10, "a", 2);
  save_checkpoint(folder, 20, "a", 2);
  write_file(replica_in(folder, 20, 1), "cut short");
  const Result result = search(folder.path(), folder.path());
  EXPECT_EQ(result.step, 10);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("rank-0001.safetensors")));
}

// On two machines each has the replica of its own worker.
TEST(CheckpointSearch, PutsTheFoldersOfTwoMachinesTogether) {
  const TemporaryFolder place;
  const CheckpointFolder first(place / "first");
  const CheckpointFolder second(place / "second");
  for (const CheckpointFolder& folder : {first, second}) save_checkpoint(folder, 10, "a", 2);
  std::filesystem::remove(replica_in(first, 10, 1));
  std::filesystem::remove(replica_in(second, 10, 0));
  const Result result = search(first.path(), second.path());
  EXPECT_EQ(result.step, 10);
  EXPECT_THAT(result.readers, ElementsAre(0, 1));
}

TEST(CheckpointSearch, OffersTheAverageOfTheReplicasThatAreLeft) {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path());
  save_checkpoint(folder, 10, "a", 2);
  std::filesystem::remove(replica_in(folder, 10, 0));
  EXPECT_THAT(search(folder.path(), folder.path()).error, HasSubstr("checkpoint.allow_missing"));
  const Result allowed = search(folder.path(), folder.path(), /*allow_missing=*/true);
  EXPECT_EQ(allowed.step, 10);
  EXPECT_THAT(allowed.readers, ElementsAre(-1, 1));
}

TEST(LocalCheckpoints, AreOrderedNewestFirst) {
  const LocalCheckpoint old{.step = 10, .digest = "a", .replicas = {0}};
  const LocalCheckpoint newer{.step = 20, .digest = "b", .replicas = {0}};
  const auto candidates = candidates_in({{old, newer}, {old}});
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].step, 20);
  EXPECT_THAT(candidates[1].with_manifest, ElementsAre(0, 1));
}

TEST(LocalCheckpoints, OfOneStepTheOneThatMoreWorkersHaveComesFirst) {
  const LocalCheckpoint mine{.step = 10, .digest = "a", .replicas = {0}};
  const LocalCheckpoint theirs{.step = 10, .digest = "b", .replicas = {0}};
  const auto candidates = candidates_in({{mine}, {theirs}, {theirs}});
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].digest, "b");
}

// Whichever of the machines it is.
TEST(LocalCheckpoints, CountAsEvaluatedWhereOneMachineHasTheEvaluation) {
  const LocalCheckpoint pending{.step = 10, .digest = "a", .pending = true};
  const LocalCheckpoint evaluated{.step = 10, .digest = "a", .metrics = {{"loss", 0.5}}};
  for (const int machine : {0, 1, 2}) {
    CheckpointsByRank by_rank(3, {pending});
    by_rank[static_cast<std::size_t>(machine)] = {evaluated};
    const auto candidates = candidates_in(by_rank);
    ASSERT_EQ(candidates.size(), 1U);
    EXPECT_FALSE(candidates[0].pending);
    EXPECT_EQ(candidates[0].metrics, evaluated.metrics);
    EXPECT_EQ(candidates[0].with_manifest.front(), machine);
    EXPECT_EQ(candidates[0].with_manifest.size(), 3U);
  }
}

// A file whose machine was killed before the manifest came belongs to the manifest of the others.
TEST(LocalCheckpoints, CountReplicasWithoutAManifest) {
  const LocalCheckpoint named{.step = 10, .digest = "a", .replicas = {0}};
  const LocalCheckpoint unnamed{.step = 10, .replicas = {1}};
  const auto candidates = candidates_in({{named}, {unnamed}});
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_THAT(candidates[0].holders.at(1), ElementsAre(1));
}

}  // namespace
}  // namespace decent
