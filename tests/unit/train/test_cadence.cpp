#include "decent/train/cadence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 12 updates, of which 4 make an epoch.
std::vector<std::int64_t> due_steps(const Cadence& cadence) {
  const Plan plan{.topology = {},
                  .sampler = std::make_unique<Sampler>(BatchPlan{.samples = 8, .batch_size = 2}),
                  .rates = {},
                  .total_steps = 12};
  std::vector<std::int64_t> due;
  for (std::int64_t step = 1; step <= plan.total_steps; ++step) {
    if (cadence.is_due(step, plan)) due.push_back(step);
  }
  return due;
}

TEST(Cadence, IsDueEverySoManySteps) {
  EXPECT_THAT(due_steps({.every_steps = 3}), ElementsAre(3, 6, 9, 12));
}

TEST(Cadence, IsDueAtTheEndOfEverySoManyEpochs) {
  EXPECT_THAT(due_steps({.every_epochs = 1}), ElementsAre(4, 8, 12));
  EXPECT_THAT(due_steps({.every_epochs = 2}), ElementsAre(8, 12));
}

TEST(Cadence, IsDueWhereEitherIs) {
  EXPECT_THAT(due_steps({.every_steps = 5, .every_epochs = 2}), ElementsAre(5, 8, 10, 12));
}

TEST(Cadence, AlwaysIsDueAfterTheLastStep) {
  EXPECT_THAT(due_steps({.every_steps = 5}), ElementsAre(5, 10, 12));
  EXPECT_THAT(due_steps({.at_end = true}), ElementsAre(12));
}

TEST(Cadence, RecursWhateverTheLastStepIs) {
  const Plan plan{.topology = {},
                  .sampler = std::make_unique<Sampler>(BatchPlan{.samples = 8, .batch_size = 2}),
                  .rates = {},
                  .total_steps = 12};
  EXPECT_FALSE(Cadence{.every_steps = 5}.recurs(12, plan));
  EXPECT_TRUE(Cadence{.every_steps = 6}.recurs(12, plan));
  EXPECT_TRUE((Cadence{.every_steps = 5, .every_epochs = 1}.recurs(12, plan)));
  EXPECT_FALSE(Cadence{.at_end = true}.recurs(12, plan));
}

TEST(Cadence, IsNeverDueWhereItIsOff) {
  EXPECT_FALSE(Cadence{}.is_on());
  EXPECT_THAT(due_steps({}), IsEmpty());
}

}  // namespace
}  // namespace decent
