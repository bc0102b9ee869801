// The recipe's names of exchanges are those of the methods that exist.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/config/choices.h"
#include "decent/parallel/exchange/methods.h"

namespace decent {
namespace {

TEST(CommDtype, HasAMethodForEveryName) {
  EXPECT_THAT(names_of<CommDType>(), ::testing::UnorderedElementsAreArray(exchange_names()));
}

// --dry-run prints them.
TEST(CommDtype, HasItsCostsForEveryName) {
  for (const std::string& name : names_of<CommDType>())
    EXPECT_TRUE(exchange_method(name).costs) << name;
}

}  // namespace
}  // namespace decent
