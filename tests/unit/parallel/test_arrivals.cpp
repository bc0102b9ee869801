// The count of gradients that are there, and the order of buckets, without autograd.

#include "decent/parallel/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

using ::testing::ElementsAre;

// Buckets of parameters {4, 3}, {2}, {1, 0}.
std::vector<Bucket> three_buckets() {
  return {{.x = {}, .parameters = {4, 3}, .offsets = {0, 32}},
          {.x = {}, .parameters = {2}, .offsets = {0}},
          {.x = {}, .parameters = {1, 0}, .offsets = {0, 32}}};
}

std::vector<std::size_t> complete_after(Arrivals& arrivals, std::size_t parameter) {
  arrivals.note(parameter);
  std::vector<std::size_t> buckets;
  while (const auto bucket = arrivals.take_complete()) buckets.push_back(*bucket);
  return buckets;
}

std::vector<std::size_t> rest_of(Arrivals& arrivals) {
  std::vector<std::size_t> buckets;
  while (const auto bucket = arrivals.take_any()) buckets.push_back(*bucket);
  return buckets;
}

TEST(Arrivals, GivesABucketOutWithItsLastGradient) {
  Arrivals arrivals(three_buckets());
  EXPECT_THAT(complete_after(arrivals, 3), ElementsAre());
  EXPECT_THAT(complete_after(arrivals, 4), ElementsAre(0));
  EXPECT_THAT(complete_after(arrivals, 2), ElementsAre(1));
  EXPECT_THAT(complete_after(arrivals, 0), ElementsAre());
  EXPECT_THAT(complete_after(arrivals, 1), ElementsAre(2));
  EXPECT_THAT(rest_of(arrivals), ElementsAre());
}

TEST(Arrivals, KeepsTheOrderOfBucketsWhateverArrivesFirst) {
  Arrivals arrivals(three_buckets());
  for (const std::size_t parameter : {0, 1, 2, 3})
    EXPECT_THAT(complete_after(arrivals, parameter), ElementsAre());
  EXPECT_THAT(complete_after(arrivals, 4), ElementsAre(0, 1, 2));
}

TEST(Arrivals, CountsAParameterOnceAStep) {
  Arrivals arrivals(three_buckets());
  EXPECT_THAT(complete_after(arrivals, 4), ElementsAre());
  EXPECT_THAT(complete_after(arrivals, 4), ElementsAre());
  EXPECT_THAT(complete_after(arrivals, 3), ElementsAre(0));
}

TEST(Arrivals, GivesOutTheRestOnceAndBeginsAnew) {
  Arrivals arrivals(three_buckets());
  complete_after(arrivals, 4);
  EXPECT_THAT(complete_after(arrivals, 3), ElementsAre(0));
  EXPECT_THAT(rest_of(arrivals), ElementsAre(1, 2));
  EXPECT_THAT(rest_of(arrivals), ElementsAre());
  EXPECT_EQ(arrivals.take_complete(), std::nullopt);
  arrivals.begin();
  EXPECT_THAT(complete_after(arrivals, 3), ElementsAre());  // that of the step before is forgotten
  EXPECT_THAT(rest_of(arrivals), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace decent
