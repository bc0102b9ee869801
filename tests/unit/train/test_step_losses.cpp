#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "decent/train/forward/step_losses.h"

namespace decent {
namespace {

using ::testing::ElementsAre;

struct Seen {
  std::vector<std::int64_t> steps;
  std::vector<double> means;
  StepLosses losses{[this](const StepLoss& loss) {
    steps.push_back(loss.step);
    means.push_back(loss.mean());
  }};

  // A step of two micro-batches.
  template <typename Loss>
  void step(std::int64_t number, const Loss& first, const Loss& second) {
    losses.settle();
    losses.add(first);
    losses.add(second);
    losses.end_step(number, 1);
  }
};

at::Tensor unread(double loss) { return at::scalar_tensor(loss, at::kFloat); }

TEST(StepLosses, TellsOfKnownOnesAtTheEndOfTheStep) {
  Seen seen;
  seen.step(1, 2.0, 4.0);
  EXPECT_THAT(seen.means, ElementsAre(3));
  seen.losses.settle();
  EXPECT_THAT(seen.steps, ElementsAre(1));
}

TEST(StepLosses, TellsOfUnreadOnesInTheNextStep) {
  Seen seen;
  seen.step(1, unread(2), unread(4));
  EXPECT_THAT(seen.steps, ElementsAre());
  seen.step(2, 6.0, 8.0);
  EXPECT_THAT(seen.steps, ElementsAre(1, 2));
  seen.step(3, unread(1), unread(2));
  seen.losses.settle();
  EXPECT_THAT(seen.means, ElementsAre(3, 7, 1.5));
}

TEST(StepLosses, TellsOfAStepThatFailed) {
  Seen seen;
  seen.losses.add(unread(NAN));
  seen.losses.end_early(7);
  EXPECT_THAT(seen.steps, ElementsAre(7));
  EXPECT_TRUE(std::isnan(seen.means.at(0)));
  seen.losses.add(5.0);
  seen.losses.end_early(8);  // was known all along
  EXPECT_THAT(seen.steps, ElementsAre(7));
}

}  // namespace
}  // namespace decent
