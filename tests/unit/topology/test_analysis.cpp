#include "decent/topology/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace decent {
namespace {

// Power iteration stops where the square moves by less than 1e-13; near-equal singular values slow
// it down to some 1e-6 in the value.
constexpr double kPrecision = 1e-5;

TEST(SpectralGap, OfExactAveragingIsOne) {
  for (int n : {1, 2, 3, 8, 33}) {
    EXPECT_NEAR(spectral_gap(make_topology("complete", n, 1), n), 1.0, kPrecision) << n;
  }
  for (int n : {2, 4, 8, 16}) {
    EXPECT_NEAR(spectral_gap(make_topology("one-peer-exp", n, 1), n), 1.0, kPrecision) << n;
  }
  EXPECT_NEAR(spectral_gap(make_topology("ring", 4, 1), 4), 1.0, kPrecision);
}

TEST(SpectralGap, OfPartialMixing) {
  // (1-gamma) I + gamma J has the second eigenvalue 1 - gamma.
  for (double gamma : {0.0, 0.25, 0.5}) {
    EXPECT_NEAR(spectral_gap(make_topology("complete", 5, 1), 5, gamma), gamma, kPrecision);
  }
  // One pair, weight w: eigenvalue w - (1 - w) on the difference.
  EXPECT_NEAR(spectral_gap(std::vector<Phase>{{{{0, 1}, 0.8}}}, 2), 1 - 0.6, kPrecision);
}

// The product of the two phases of an even ring maps the Fourier mode k of the N / 2 pairs to
// cos^2(pi k / N) of it at the most: the second singular value is cos(2 pi / N) to the power of 1
// for N = 6 and 8, as numpy.linalg.svd of the product gives it: 0.5, 0.707107, 0.809017.
TEST(SpectralGap, OfEvenRings) {
  for (int n : {6, 8, 10}) {
    EXPECT_NEAR(spectral_gap(make_topology("ring", n, 1), n),
                1 - std::cos(2 * std::numbers::pi / n), kPrecision)
        << n;
  }
}

TEST(SpectralGap, OfWorkersThatNeverMeetIsZero) {
  EXPECT_NEAR(spectral_gap(std::vector<Phase>{{{{0, 1}, 0.5}, {{2, 3}, 0.5}}}, 4), 0.0, kPrecision);
}

TEST(StepsToReachAll, OfKnownTopologies) {
  EXPECT_EQ(steps_to_reach_all(make_topology("complete", 1, 1), 1), 0);
  EXPECT_EQ(steps_to_reach_all(make_topology("complete", 7, 1), 7), 1);
  for (int k = 1; k <= 5; ++k) {
    EXPECT_EQ(steps_to_reach_all(make_topology("one-peer-exp", 1 << k, 1), 1 << k), k);
  }
  // On an even ring news goes one worker further to both sides in each step.
  for (int n : {4, 6, 8, 32}) {
    EXPECT_EQ(steps_to_reach_all(make_topology("ring", n, 1), n), n / 2) << n;
  }
}

TEST(StepsToReachAll, NeverWhereWorkersDoNotMeetOrDoNotMix) {
  EXPECT_EQ(steps_to_reach_all(std::vector<Phase>{{{{0, 1}, 0.5}, {{2}, 1}}}, 3), std::nullopt);
  EXPECT_EQ(steps_to_reach_all(std::vector<Phase>{{{{0, 1}, 1.0}}}, 2), std::nullopt);
}

}  // namespace
}  // namespace decent
