#include "decent/train/batch_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/refusal.h"

namespace decent {
namespace {

using ::testing::ElementsAre;

// Ranks 0 and 1 on one host, 2 and 3 on another.
Member first_of_four() {
  return {.workers = everyone(4),
          .rank = 0,
          .local_size = 2,
          .machines = {0, 0, 2, 2},
          .hosts = {"fast", "fast", "slow.lan", "slow.lan"}};
}

std::string refusal_of(const BatchSizeRecipe& recipe) {
  return testing::refusal([&] { batch_sizes(recipe, first_of_four(), /*resumes=*/false); });
}

TEST(BatchSizes, AreTheSameIfNothingIsNamed) {
  EXPECT_THAT(batch_sizes({.usual = 7, .hosts = {}, .ranks = {}}, first_of_four(), false),
              ElementsAre(7, 7, 7, 7));
}

TEST(BatchSizes, FollowTheHostAndFirstTheRank) {
  const BatchSizeRecipe recipe{.usual = 32, .hosts = {{"slow.lan", 16}}, .ranks = {{"3", 8}}};
  EXPECT_THAT(batch_sizes(recipe, first_of_four(), false), ElementsAre(32, 32, 16, 8));
}

// Rank 2 of the start is at place 1, and keeps its size.
TEST(BatchSizes, AreThoseOfTheMembers) {
  Member member = first_of_four();
  member.workers = {.epoch = 1, .ranks = {0, 2, 3}};
  const BatchSizeRecipe recipe{.usual = 32, .hosts = {{"slow.lan", 16}}, .ranks = {{"2", 4}}};
  EXPECT_THAT(batch_sizes(recipe, member, false), ElementsAre(32, 4, 16));
}

TEST(BatchSizes, AreForHostsAndRanksOfTheRun) {
  EXPECT_EQ(refusal_of({.usual = 32, .hosts = {{"slow", 16}}, .ranks = {}}),
            "data.batch_size.hosts: no worker runs on 'slow'; the hosts of this run are fast, "
            "slow.lan");
  for (const std::string rank : {"4", "12345678901234567890"}) {
    EXPECT_EQ(refusal_of({.usual = 32, .hosts = {}, .ranks = {{rank, 16}}}),
              "data.batch_size.ranks: there is no rank " + rank +
                  " among 4 workers, which are counted from 0");
  }
}

TEST(BatchSizes, MayNameWhatARunThatResumesHasLost) {
  const BatchSizeRecipe recipe{.usual = 32, .hosts = {{"gone", 16}}, .ranks = {{"7", 8}}};
  EXPECT_THAT(batch_sizes(recipe, first_of_four(), /*resumes=*/true), ElementsAre(32, 32, 32, 32));
}

}  // namespace
}  // namespace decent
