// From where the workers of a run that resumes start.

#include "decent/resume/starting_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/report/run_folder.h"
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
  bool from_average = false;
  bool becomes_alike = false;
  std::vector<std::string> lines;
};

// Of two workers that resume the only checkpoint in `output`.
Start start_in(const std::filesystem::path& output, const std::string& method) {
  Start start;
  testing::run_worlds(2, [&](World& world) {
    const int rank = world.launch().rank;
    Recipe recipe;
    recipe.output = output;
    recipe.checkpoint.allow_missing = true;
    Log log(rank, Verbosity::quiet);
    const auto found = find_start(
        {.world = world, .recipe = recipe, .log = log},
        {.choice = "auto",
         .run_id = "fresh",
         .run = {.facts = {{"parallel.method", method}}, .workers = 2, .methods = kMethods},
         .copies_alike = method == "all_reduce"});
    if (rank != 0) return;
    start = {.from_average = found->from_average,
             .becomes_alike = found->becomes_alike,
             .lines = resume_lines(*found, 20, 2)};
  });
  return start;
}

class StartingPointTest : public ::testing::Test {
 protected:
  std::filesystem::path output() const { return place_.path() / "run"; }
  CheckpointFolder checkpoints() const {
    return CheckpointFolder(RunFolder(output()).checkpoints());
  }
  Start start(const std::string& method) const { return start_in(output(), method); }

 private:
  TemporaryFolder place_;
};

const auto kBecomeAlike = Contains(HasSubstr("from now on their copies are alike"));

TEST_F(StartingPointTest, IsEachWorkersOwnReplica) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  EXPECT_FALSE(start("gossip").from_average);
}

TEST_F(StartingPointTest, IsTheAverageWhereCopiesBecomeAlike) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  const Start alike = start("all_reduce");
  EXPECT_TRUE(alike.from_average);
  EXPECT_TRUE(alike.becomes_alike);
  EXPECT_THAT(alike.lines, kBecomeAlike);
  EXPECT_THAT(alike.lines, Contains("changed since: parallel.method was gossip, is all_reduce"));
}

TEST_F(StartingPointTest, IsWhatWasSavedWhereCopiesWereAlike) {
  save_checkpoint(checkpoints(), 10, "a", 2, /*copies_alike=*/true);
  for (const std::string method : {"gossip", "all_reduce"}) {
    EXPECT_FALSE(start(method).from_average) << method;
    EXPECT_THAT(start(method).lines, Not(kBecomeAlike));
  }
}

// One line says why all start from the average.
TEST_F(StartingPointTest, IsTheAverageOfAnotherNumberOfReplicas) {
  save_checkpoint(checkpoints(), 10, "a", 3);
  const Start other = start("all_reduce");
  EXPECT_TRUE(other.from_average);
  EXPECT_THAT(other.lines, Contains(HasSubstr("the checkpoint is of 3 workers, this run has 2")));
  EXPECT_THAT(other.lines, Not(kBecomeAlike));
}

TEST_F(StartingPointTest, IsTheAverageOfTheReplicasThatAreLeft) {
  save_checkpoint(checkpoints(), 10, "a", 2);
  std::filesystem::remove(checkpoints().path_of(10) / replica_file_name(1));
  EXPECT_TRUE(start("gossip").from_average);
}

}  // namespace
}  // namespace decent
