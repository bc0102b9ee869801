#include "decent/optim/plateau.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>

#include "../support/refusal.h"
#include "decent/optim/schedule.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::refusal;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// tests/cli/test_schedules.py compares whole courses with PyTorch's.
TEST(Plateau, FallsWhenPatienceIsOver) {
  Plateau plateau({.lr = 1, .factor = 0.5, .patience = 1});
  EXPECT_FALSE(plateau.saw(1, 3));
  EXPECT_FALSE(plateau.saw(2, 3));  // the first without improvement
  EXPECT_TRUE(plateau.saw(3, 3));
  EXPECT_EQ(plateau.lr(4), 0.5);
  EXPECT_FALSE(plateau.saw(4, 2));
  EXPECT_FALSE(plateau.saw(5, kNan));
  EXPECT_TRUE(plateau.saw(6, kNan));
  EXPECT_EQ(plateau.lr(7), 0.25);
}

// Modulo exchanges ask for them.
TEST(Plateau, AnswersForPastSteps) {
  Plateau plateau({.lr = 1, .factor = 0.5, .patience = 0});
  for (const std::int64_t step : {10, 20, 30}) plateau.saw(step, 3);
  EXPECT_EQ(plateau.lr(1), 1);
  EXPECT_EQ(plateau.lr(20), 1);
  EXPECT_EQ(plateau.lr(21), 0.5);
  EXPECT_EQ(plateau.lr(30), 0.5);
  EXPECT_EQ(plateau.lr(31), 0.25);
  EXPECT_EQ(plateau.lr(1000), 0.25);
}

TEST(Plateau, GoesOnFromItsState) {
  const PlateauOptions options{.lr = 1, .factor = 0.5, .patience = 1};
  Plateau first(options);
  for (const std::int64_t step : {1, 2, 3, 4}) first.saw(step, 3);
  Plateau second(options);
  second.restore(first.state());
  EXPECT_EQ(second.lr(3), 1);
  EXPECT_EQ(second.lr(5), 0.5);
  EXPECT_TRUE(second.saw(5, 3));
  EXPECT_EQ(second.lr(6), 0.25);
}

TEST(Plateau, ScalesWithALearningRateThatHasChanged) {
  Plateau first({.lr = 1, .factor = 0.5, .patience = 0});
  first.saw(1, 1);
  first.saw(2, 1);
  Plateau second({.lr = 0.1, .factor = 0.5, .patience = 0});
  second.restore(first.state());
  EXPECT_DOUBLE_EQ(second.lr(2), 0.1);
  EXPECT_DOUBLE_EQ(second.lr(3), 0.05);
}

TEST(Plateau, IsAScheduleOfItsRate) {
  const auto plateau = std::make_shared<Plateau>(
      PlateauOptions{.lr = 1, .factor = 0.1, .patience = 0, .min_lr = 0.25});
  const Schedule schedule = make_schedule("plateau", {.plateau = plateau});
  EXPECT_EQ(schedule(1), 1);
  plateau->saw(1, 1);
  plateau->saw(2, 1);
  EXPECT_EQ(schedule(2), 1);
  EXPECT_EQ(schedule(3), 0.25);
  EXPECT_TRUE(schedule_follows_evaluations("plateau"));
  EXPECT_FALSE(schedule_follows_evaluations("linear"));
  EXPECT_TRUE(schedule_fits_into_chain("linear"));
  EXPECT_FALSE(schedule_fits_into_chain("plateau"));
  EXPECT_FALSE(schedule_fits_into_chain("chain"));
}

TEST(Plateau, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(refusal([] { Plateau({.factor = 1}); }), HasSubstr("factor is 1"));
  EXPECT_THAT(refusal([] { Plateau({.patience = -1}); }), HasSubstr("patience is -1"));
  EXPECT_THAT(refusal([] { Plateau({.min_lr = -1}); }), HasSubstr("min_lr is -1"));
  EXPECT_THAT(refusal([] { make_schedule("plateau", {}); }),
              HasSubstr("nothing that looks at evaluations"));
}

}  // namespace
}  // namespace decent
