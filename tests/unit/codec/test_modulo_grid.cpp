// The grid against its definition, in closed forms.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "decent/codec/modulo_grid.h"

namespace decent {
namespace {

TEST(ModuloRange, FollowsSlicesGammaAndTheLeastEvenEdge) {
  const std::vector<ModuloEdge> pairs = {{.members = 2, .self_weight = 0.5},
                                         {.members = 1, .self_weight = 1.0}};
  EXPECT_EQ(modulo_range(1, 1, pairs), 4);
  EXPECT_EQ(modulo_range(1, 2, pairs), 4);
  EXPECT_EQ(modulo_range(1, 8, pairs), 16);
  EXPECT_EQ(modulo_range(0.25, 1, pairs), 8);
  // n W_ij = 3 (1 - 0.5) / 2 = 0.75, of a pair with weight 0.9: 0.2.
  EXPECT_EQ(modulo_range(1, 1, std::vector<ModuloEdge>{{3, 0.5}, {2, 0.5}}), 4 / std::sqrt(0.75));
  EXPECT_DOUBLE_EQ(*modulo_range(1, 1, std::vector<ModuloEdge>{{3, 0.5}, {2, 0.9}}),
                   4 / std::sqrt(0.2));
}

TEST(ModuloRange, OfEvenEdgesIsExactWhateverTheirSize) {
  for (int n = 2; n < 100; ++n)
    EXPECT_EQ(modulo_range(1, 1, std::vector<ModuloEdge>{{n, 1.0 / n}}), 4) << n;
}

TEST(ModuloRange, IsNoneWhereNobodyMixes) {
  EXPECT_EQ(modulo_range(0, 1, std::vector<ModuloEdge>{{2, 0.5}}), std::nullopt);
  EXPECT_EQ(modulo_range(1, 1, std::vector<ModuloEdge>{{1, 1.0}, {2, 1.0}}), std::nullopt);
  EXPECT_EQ(modulo_range(1, 1, {}), std::nullopt);
}

TEST(LearningRateBound, IsTheLargestOfTheLastSteps) {
  const auto falling = [](std::int64_t step) { return 1.0 / static_cast<double>(step); };
  LearningRateBound two(falling, 1);  // reaches as far as for 2 slices: 16 steps
  EXPECT_EQ(two.of_update(2), 1.0);
  EXPECT_EQ(two.of_update(18), 1.0);
  EXPECT_EQ(two.of_update(19), 1.0 / 2);
  EXPECT_EQ(two.of_update(100), 1.0 / 83);
  EXPECT_EQ(two.of_update(19), 1.0 / 2);  // back, as in resuming
  LearningRateBound four(falling, 4);
  EXPECT_EQ(four.of_update(34), 1.0);
  EXPECT_EQ(four.of_update(35), 1.0 / 2);
}

TEST(LearningRateBound, StaysAboveAPartOfTheHighestSoFar) {
  const auto falls_to_0 = [](std::int64_t step) { return step <= 3 ? 0.5 * (step - 1.0) : 0.0; };
  LearningRateBound bound(falls_to_0, 1);
  EXPECT_EQ(bound.of_update(2), 0.0);  // nothing was higher yet
  EXPECT_EQ(bound.of_update(3), 0.5);
  EXPECT_EQ(bound.of_update(20), 1.0);
  EXPECT_EQ(bound.of_update(21), std::ldexp(1.0, -12));
  EXPECT_EQ(bound.of_update(1'000'000), std::ldexp(1.0, -12));
}

TEST(GridExponent, RoundsUpToAPowerOfTwo) {
  EXPECT_EQ(grid_exponent(4, 0.5, 2), 0);                     // 2 * 4 * 0.5 / 4 = 1
  EXPECT_EQ(grid_exponent(4, std::nextafter(0.5, 1), 2), 1);  // a little more
  EXPECT_EQ(grid_exponent(4, std::nextafter(0.5, 0), 2), 0);  // a little less
  EXPECT_EQ(grid_exponent(4, 0.5, 4), -2);
  EXPECT_EQ(grid_exponent(4, 1e-3, 2), -8);  // 0.002 <= 2^-8 = 0.0039
}

TEST(GridExponent, StaysInRange) {
  EXPECT_EQ(grid_exponent(4, 0, 2), -100);
  EXPECT_EQ(grid_exponent(4, 1e-300, 2), -100);
  EXPECT_EQ(grid_exponent(4, std::numeric_limits<double>::quiet_NaN(), 2), -100);
  EXPECT_EQ(grid_exponent(4, 1e300, 2), 120);
  EXPECT_EQ(grid_exponent(4, std::numeric_limits<double>::infinity(), 2), 120);
}

TEST(ModuloDither, IsAMultipleOfTheGoldenRatioOrAHalf) {
  EXPECT_EQ(modulo_dither(kModulo2, 1), 0.6180339887498949);
  EXPECT_EQ(modulo_dither(kModulo2, 2), 2 * 0.6180339887498949 - 1);
  EXPECT_EQ(modulo_dither(kModulo4, 1), 0.5);
  EXPECT_EQ(modulo_dither(kModulo4, 2), 0.5);
}

}  // namespace
}  // namespace decent
