#include "decent/optim/loss_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "decent/core/error.h"

namespace decent {
namespace {

using State = std::pair<float, std::int64_t>;

std::vector<State> states_after(LossScaler scaler, const std::vector<bool>& overflows) {
  std::vector<State> states;
  for (const bool overflow : overflows) {
    scaler.update(overflow);
    states.emplace_back(static_cast<float>(scaler.scale()), scaler.growth_tracker());
  }
  return states;
}

const std::vector<bool> kOverflows = {false, false, false, true, false, false,
                                      false, false, true,  true, false};

// torch 2.11's torch._amp_update_scale_(scale, tracker, inf, 1.7, 0.3, 2), printed after each call.
TEST(LossScaler, EqualsTorch) {
  const LossScalerOptions options{
      .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 2};
  EXPECT_EQ(states_after(LossScaler(options), kOverflows), (std::vector<State>{{65536.0F, 1},
                                                                               {111411.203F, 0},
                                                                               {111411.203F, 1},
                                                                               {33423.3594F, 0},
                                                                               {33423.3594F, 1},
                                                                               {56819.7109F, 0},
                                                                               {56819.7109F, 1},
                                                                               {96593.5078F, 0},
                                                                               {28978.0527F, 0},
                                                                               {8693.41602F, 0},
                                                                               {8693.41602F, 1}}));
}

TEST(LossScaler, DoesNotGrowOutOfFloat32) {
  const LossScalerOptions options{
      .init_scale = 3e38, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 2};
  const auto states = states_after(LossScaler(options), kOverflows);
  EXPECT_EQ(states[1], State(3e38F, 0));
  EXPECT_EQ(states[3], State(8.99999981e+37F, 0));
}

TEST(LossScaler, GoesOnFromAnEarlierState) {
  LossScaler scaler(LossScalerOptions{.growth_interval = 5});
  scaler.restore(1024, 4);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 2048);
  EXPECT_EQ(scaler.growth_tracker(), 0);
}

TEST(LossScaler, RefusesOptionsOutOfRange) {
  const auto refusal = [](const LossScalerOptions& options) -> std::string {
    try {
      const LossScaler scaler(options);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  using ::testing::HasSubstr;
  for (const double scale : {0.0, -1.0, 1e300, std::nan("")}) {
    EXPECT_THAT(refusal({.init_scale = scale}), HasSubstr("init_scale"));
  }
  EXPECT_THAT(refusal({.growth_factor = 1}), HasSubstr("growth_factor"));
  EXPECT_THAT(refusal({.backoff_factor = 1}), HasSubstr("backoff_factor"));
  EXPECT_THAT(refusal({.backoff_factor = 0}), HasSubstr("backoff_factor"));
  EXPECT_THAT(refusal({.growth_interval = 0}), HasSubstr("growth_interval"));
}

}  // namespace
}  // namespace decent
