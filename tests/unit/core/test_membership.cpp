#include "decent/core/membership.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace decent {
namespace {

TEST(Membership, OfEveryoneHasEachRankAtItsOwnPlace) {
  const Membership four = everyone(4);
  EXPECT_EQ(four.epoch, 0);
  EXPECT_EQ(four.ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(four.size(), 4);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(four.place_of(rank), rank);
}

TEST(Membership, CountsPlacesWithoutThoseThatAreNotMembers) {
  const Membership members = {.epoch = 1, .ranks = {0, 2, 3}};
  EXPECT_EQ(members.size(), 3);
  EXPECT_EQ(members.place_of(0), 0);
  EXPECT_EQ(members.place_of(2), 1);
  EXPECT_EQ(members.place_of(3), 2);
}

TEST(Membership, HasNoPlaceForOthers) {
  const Membership members = {.epoch = 1, .ranks = {0, 2, 3}};
  for (const int rank : {-1, 1, 4}) EXPECT_THROW(members.place_of(rank), std::logic_error) << rank;
}

TEST(Membership, IsAnotherInEveryEpoch) {
  const Membership first = everyone(2);
  const Membership second = {.epoch = 1, .ranks = {0, 1}};
  EXPECT_EQ(first, everyone(2));
  EXPECT_NE(first, second);
  EXPECT_NE(first, everyone(3));
}

}  // namespace
}  // namespace decent
