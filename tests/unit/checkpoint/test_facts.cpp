#include "decent/checkpoint/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

using ::testing::IsEmpty;

TEST(Facts, HaveAValueForEachTopic) {
  const Facts facts = {{"seed", "3"}, {"the device", "cpu"}};
  EXPECT_EQ(value_of(facts, "the device"), "cpu");
  EXPECT_EQ(value_of(facts, "the"), "");
}

TEST(Facts, DifferInWhatOneSideLacksOrSaysOtherwise) {
  const Facts here = {{"b", "1"}, {"same", "x"}, {"a", "2"}};
  const Facts there = {{"z", "4"}, {"same", "x"}, {"a", "3"}, {"c", "5"}};
  std::vector<std::string> found;
  for (const FactDifference& each : differences(here, there))
    found.push_back(each.topic + " " + each.here.value_or("-") + " " + each.there.value_or("-"));
  // Those of `here` in its order, then those of `there`.
  EXPECT_EQ(found, (std::vector<std::string>{"b 1 -", "a 2 3", "z - 4", "c - 5"}));
  EXPECT_THAT(differences(here, here), IsEmpty());
}

TEST(Facts, ContradictOnlyInWhatBothSay) {
  EXPECT_FALSE(contradict({{"a", "1"}, {"b", "2"}}, {{"c", "3"}, {"a", "1"}}));
  EXPECT_TRUE(contradict({{"a", "1"}, {"b", "2"}}, {{"b", "3"}}));
}

TEST(Facts, AreShortInMessages) {
  EXPECT_EQ(shorten(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(shorten(std::string(81, 'a')), std::string(80, 'a') + "..");
}

// Five lines with what stands before them, which is the most that a message may have.
TEST(Facts, OfManyLinesTheFirstAreShown) {
  EXPECT_EQ(first_lines({"a", "b", "c"}), "\n  a\n  b\n  c");
  EXPECT_EQ(first_lines({"a", "b", "c", "d", "e"}), "\n  a\n  b\n  c\n  and 2 more");
}

}  // namespace
}  // namespace decent
