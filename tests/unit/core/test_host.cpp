#include "decent/core/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace decent {
namespace {

TEST(RandomName, IsOfHexadecimalDigits) {
  EXPECT_THAT(random_name(), ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(random_name().size(), 32U);
  EXPECT_EQ(random_name(8).size(), 8U);
  EXPECT_EQ(random_name(0), "");
}

// In 32000 digits one of the 16 is missing with a probability of 16 * (15/16)^32000 < 1e-800.
TEST(RandomName, IsNeverTheSameAndUsesAllDigits) {
  std::set<std::string> names;
  std::set<char> digits;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = random_name();
    EXPECT_TRUE(names.insert(name).second);
    digits.insert(name.begin(), name.end());
  }
  EXPECT_EQ(digits.size(), 16U);
}

}  // namespace
}  // namespace decent
