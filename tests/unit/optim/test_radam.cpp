// radam, radamw against torch.optim.RAdam, which torch's C++ does not have: what PyTorch 2.11 makes
// of thirty_steps.h's first five weights in float64. test_error_bounds.cpp has the bound.

#include "thirty_steps.h"

namespace decent {
namespace {

using testing::after_thirty_steps;
using testing::expect_near;

// 30 steps of some 13 roundings of 1.1e-16 each of terms below 10.
constexpr double kRoundingsOfRAdam = 1e-12;

TEST(RAdam, StepsAsPyTorchDoes) {
  expect_near(after_thirty_steps(*make_update("radam"), 0),
              {0.7487720078151612, 0.42542241588572016, -0.43391665207112157, -0.9157511009388399,
               -0.4728820917584314},
              kRoundingsOfRAdam);
  expect_near(after_thirty_steps(*make_update("radam"), 0.1),
              {0.6853128359735869, 0.3907340635065358, -0.40210742682375455, -0.8462677504862737,
               -0.4329626814531714},
              kRoundingsOfRAdam);
  expect_near(after_thirty_steps(*make_update("radamw"), 0.1),
              {0.5494930057681848, 0.3129874334797349, -0.3214169134866566, -0.6767815208055373,
               -0.3477574248457997},
              kRoundingsOfRAdam);
  const Options others{{"betas", std::array{0.5, 0.9}}, {"eps", 0.1}};
  expect_near(after_thirty_steps(*make_update("radam", others), 0.3),
              {0.41132426245565157, 0.19590981280648112, -0.21201718883489853, -0.46448730535462474,
               -0.2873944029946303},
              kRoundingsOfRAdam);
}

// With a second beta of at most 2/3 it never divides by sqrt(v): momentum with a bias correction.
TEST(RAdam, NeverDividesWithASmallSecondBeta) {
  expect_near(after_thirty_steps(*make_update("radam", {{"betas", std::array{0.9, 0.6}}}), 0),
              {0.6909045669523383, 0.4055825697510109, -0.4342340801577057, -0.8966045499604368,
               -0.4172342031586129},
              kRoundingsOfRAdam);
}

}  // namespace
}  // namespace decent
