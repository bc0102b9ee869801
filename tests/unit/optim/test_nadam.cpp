// nadam, nadamw against torch.optim.NAdam, which torch's C++ does not have: what PyTorch 2.11 makes
// of thirty_steps.h's first five weights in float64, with float64 as the default type, so that its
// mu_product is one, too. test_error_bounds.cpp has the bound.

#include "decent/optim/rules/nadam.h"

#include <limits>

#include "thirty_steps.h"

namespace decent {
namespace {

using testing::after_thirty_steps;
using testing::expect_near;

// 30 steps of some 15 roundings of 1.1e-16 each of terms below 10.
constexpr double kRoundingsOfNAdam = 1e-12;

TEST(NAdam, StepsAsPyTorchDoes) {
  expect_near(after_thirty_steps(*make_update("nadam"), 0),
              {0.8816023793272183, 0.46733545573809726, -0.5160340047150701, -0.9576651526807932,
               -0.5434254915915762},
              kRoundingsOfNAdam);
  expect_near(after_thirty_steps(*make_update("nadam"), 0.1),
              {0.6357330644433851, 0.32186980335686877, -0.3624898409261788, -0.6830245746421807,
               -0.38293224326141295},
              kRoundingsOfNAdam);
  expect_near(after_thirty_steps(*make_update("nadamw"), 0.1),
              {0.6612808869468602, 0.3412889507023436, -0.3923373667213515, -0.7176238582439173,
               -0.40198877010790096},
              kRoundingsOfNAdam);
  const Options others{{"betas", std::array{0.5, 0.9}}, {"eps", 0.1}, {"momentum_decay", 0.5}};
  expect_near(after_thirty_steps(*make_update("nadam", others), 0.3),
              {0.39459842909004983, 0.1655049222757269, -0.1756835261272144, -0.3928611692046235,
               -0.22755832909384768},
              kRoundingsOfNAdam);
}

// The product without shortcuts.
double all_factors(const rules::NAdamOptions& options, std::int64_t s) {
  double product = 1;
  for (std::int64_t i = 1; i <= s; ++i)
    product *= rules::NAdam::momentum(options, static_cast<double>(i));
  return product;
}

// Also where either shortcut is taken: by the product, and by powers of 0.96 that vanish.
TEST(NAdam, MultipliesNoMoreMomentaThanMatter) {
  for (const double beta1 : {0.0, 0.5, 0.9, 0.99, 0.9999}) {
    for (const double decay : {0.0, 4e-3, 0.1, 0.38, 1.0, 100.0, 1e300}) {
      const rules::NAdamOptions options{.betas = {beta1, 0.999}, .momentum_decay = decay};
      for (const std::int64_t s : {1, 2, 3, 50, 1000, 20000}) {
        // Two roundings of 1.1e-16 for each of 20000 factors.
        const double expected = all_factors(options, s);
        EXPECT_NEAR(rules::NAdam::product(options, s), expected, 5e-12 * expected + 0x1p-54)
            << beta1 << " " << decay << " " << s;
      }
      // Of so many updates none is left.
      EXPECT_EQ(1 - rules::NAdam::product(options, std::numeric_limits<std::int64_t>::max()), 1);
    }
  }
}

}  // namespace
}  // namespace decent
