#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "../support/bucket_problem.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/bucket_update.h"

namespace decent {
namespace {

using testing::BucketProblem;
using testing::mixing_of;
using testing::same_bits;
using testing::sum_of_squares;

// Every rule, and those options of theirs that choose between formulas.
std::vector<std::unique_ptr<BucketUpdate>> all_updates() {
  std::vector<std::unique_ptr<BucketUpdate>> all;
  for (const std::string& name : update_names()) {
    all.push_back(make_update(name, {{"momentum", 0.9}, {"accum_iter", 1}}));
    all.push_back(make_update(name, {{"accum_iter", 3}}));
  }
  all.push_back(make_update("sgd", {{"momentum", 0.9}, {"nesterov", true}}));
  return all;
}

TEST(BucketUpdate, NamesItsStatesAsTorchDoes) {
  using ::testing::ElementsAre;
  EXPECT_THAT(make_update("sgd")->state_names(), ElementsAre("momentum_buffer"));
  EXPECT_THAT(make_update("adam")->state_names(), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(make_update("adagrad")->state_names(), ElementsAre("sum"));
  EXPECT_THAT(make_update("nadam")->state_names(), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(make_update("radam")->state_names(), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_TRUE(make_update("adafactor")->is_factored());  // names them where it keeps them
  EXPECT_THAT(make_update("accum_adam")->state_names(),
              ElementsAre("exp_avg", "exp_avg_sq", "accum_grad"));
}

template <typename T>
class BucketUpdateOf : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(BucketUpdateOf, ElementTypes);

// In place, piece by piece, instead of from an array of the whole bucket.
template <typename T>
void apply_in_pieces(BucketProblem<T>& problem, const BucketUpdate& update, const Mixing& mixing,
                     std::vector<int>& written) {
  const Scalar scalar = std::is_same_v<T, double> ? Scalar::float64 : Scalar::float32;
  const auto mix_piece = [&](std::int64_t begin, std::int64_t end) {
    Mixing part = mixing;
    part.received = problem.received.data() + begin;
    mix(problem.x.data() + begin, end - begin, scalar, part);
  };
  const std::vector<void*> states = problem.states_of(update);
  update.apply({.x = problem.x.data(),
                .numel = static_cast<std::int64_t>(problem.x.size()),
                .states = states,
                .scalar = scalar,
                .mixing = {.in_place = mix_piece},
                .slices = problem.slices,
                .lr = 0.1,
                .written =
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i)
                        ++written[static_cast<std::size_t>(i)];
                    },
                .factored_work = testing::keep_direction});
}

TYPED_TEST(BucketUpdateOf, GivesTheSameBitsInPieces) {
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> whole({31, 40000, 7, 8192});
    whole.slices[2].grad = nullptr;
    BucketProblem<TypeParam> pieces = whole;
    std::vector<int> written(whole.x.size());
    whole.apply(*update, mixing_of(0.3, 0.6), 0.1);
    apply_in_pieces(pieces, *update, {.self = 0.3, .other = 0.6}, written);
    EXPECT_TRUE(same_bits(whole, pieces));
    // From the first parameter on: buckets begin with one.
    const auto first = written.begin() + whole.slices[0].offset;
    EXPECT_TRUE(std::all_of(first, written.end(), [](int times) { return times == 1; }));
  }
}

TYPED_TEST(BucketUpdateOf, OnlyMixesWhereThereIsNoGradient) {
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> problem({31, 40000, 7});
    problem.slices[1].grad = nullptr;
    problem.slices[1].weight_decay = 0.5;
    const BucketProblem<TypeParam> before = problem;
    problem.apply(*update, mixing_of(0.75, 0.25), 0.1);
    const auto begin = static_cast<std::size_t>(problem.slices[1].offset);
    for (std::size_t i = begin; i < begin + 40000; ++i) {
      // A quarter is exact: one rounding, of the sum.
      ASSERT_EQ(problem.x[i],
                std::fma(TypeParam(0.75), before.x[i], TypeParam(0.25) * before.received[i]));
      ASSERT_EQ(problem.state0[i], before.state0[i]);
      ASSERT_EQ(problem.state1[i], before.state1[i]);
    }
    EXPECT_NE(problem.x[begin - 4], before.x[begin - 4]);  // the parameter before was updated
  }
}

TYPED_TEST(BucketUpdateOf, LeavesAloneWhatHasNeitherGradientNorMixing) {
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> problem({7, 31});
    for (BucketSlice& slice : problem.slices) slice.grad = nullptr;
    const BucketProblem<TypeParam> before = problem;
    problem.apply(*update, {}, 0.1);
    EXPECT_TRUE(same_bits(problem, before));
  }
}

TYPED_TEST(BucketUpdateOf, NeverWritesBetweenParameters) {
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> problem({1, 7, 31, 1000, 40000, 0});
    std::vector<bool> gap(problem.x.size(), true);
    for (const BucketSlice& slice : problem.slices) {
      for (std::int64_t i = 0; i < slice.numel; ++i) {
        gap[static_cast<std::size_t>(slice.offset + i)] = false;
      }
    }
    problem.apply(*update, mixing_of(0.5, 0.5), 0.1);
    for (std::size_t i = 0; i < gap.size(); ++i) {
      if (!gap[i]) continue;
      ASSERT_EQ(problem.x[i], problem.kGap);
      ASSERT_EQ(problem.state0[i], problem.kGap);
      ASSERT_EQ(problem.state1[i], problem.kGap);
    }
  }
}

TYPED_TEST(BucketUpdateOf, MixesWithNothingExactlyAtGammaZero) {
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> mixed({31, 1000});
    BucketProblem<TypeParam> alone = mixed;
    mixed.apply(*update, mixing_of(1, 0), 0.1);
    alone.apply(*update, {}, 0.1);
    EXPECT_TRUE(same_bits(mixed, alone));
  }
}

TYPED_TEST(BucketUpdateOf, GivesTheSameBitsOnAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const auto& update : all_updates()) {
    const BucketProblem<TypeParam> start({1, 40000, 7, 32768, 100001});
    omp_set_num_threads(1);
    BucketProblem<TypeParam> serial = start;
    serial.apply(*update, mixing_of(0.5, 0.5), 0.1);
    for (const int n : {2, 3}) {
      omp_set_num_threads(n);
      BucketProblem<TypeParam> parallel = start;
      parallel.apply(*update, mixing_of(0.5, 0.5), 0.1);
      EXPECT_TRUE(same_bits(parallel, serial)) << n << " threads";
    }
  }
  omp_set_num_threads(threads);
}

TYPED_TEST(BucketUpdateOf, GivesTheSameBitsOnEveryInstructionSet) {
  const auto& sets = cpu_kernels_of_all_instruction_sets();
  for (const auto& update : all_updates()) {
    for (const Mixing& mixing : {Mixing{}, mixing_of(0.7, 0.3)}) {
      for (const std::int64_t number :
           {1, 3, 6}) {  // accumulating, the end of a round; radam divides
        BucketProblem<TypeParam> start({1, 7, 31, 1000, 4099});
        for (BucketSlice& slice : start.slices) slice.updates = number;
        start.slices[3].weight_decay = 0.1;
        start.slices[2].grad = nullptr;
        BucketProblem<TypeParam> narrowest = start;
        narrowest.apply(*update, mixing, 0.1, 0.37, &sets.front());
        EXPECT_FALSE(same_bits(narrowest.x, start.x));
        for (const BucketKernels& kernels : sets) {
          BucketProblem<TypeParam> problem = start;
          problem.apply(*update, mixing, 0.1, 0.37, &kernels);
          EXPECT_TRUE(same_bits(problem, narrowest)) << update->state_names().front();
        }
      }
    }
  }
}

// An element's result does not depend on where in a parameter it stands, nor on what else the
// bucket holds.
TYPED_TEST(BucketUpdateOf, TreatsEveryElementAlike) {
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> whole({40000});
    BucketProblem<TypeParam> parts = whole;
    const BucketSlice all = parts.slices[0];
    parts.slices.clear();
    for (std::int64_t begin = 0, size = 1; begin < all.numel; begin += size, size = size * 3 + 2) {
      BucketSlice part = all;
      part.offset += begin;
      part.numel = std::min(size, all.numel - begin);
      part.grad = static_cast<const TypeParam*>(all.grad) + begin;
      parts.slices.push_back(part);
    }
    whole.apply(*update, mixing_of(0.5, 0.5), 0.1);
    parts.apply(*update, mixing_of(0.5, 0.5), 0.1);
    EXPECT_TRUE(same_bits(whole, parts));
  }
}

TYPED_TEST(BucketUpdateOf, PassesOnNanAndInfinityWhereTheyAre) {
  using Limits = std::numeric_limits<TypeParam>;
  for (const auto& update : all_updates()) {
    BucketProblem<TypeParam> problem({100});
    BucketProblem<TypeParam> clean = problem;
    const auto at = static_cast<std::size_t>(problem.slices[0].offset);
    problem.grads[0][3] = Limits::quiet_NaN();
    problem.grads[0][40] = Limits::infinity();
    problem.received[at + 77] = Limits::quiet_NaN();
    problem.received[at + 99] = -Limits::infinity();
    problem.apply(*update, mixing_of(0.5, 0.5), 0.1);
    clean.apply(*update, mixing_of(0.5, 0.5), 0.1);
    for (std::size_t i = 0; i < 100; ++i) {
      // What the loops of a factored update get of a gradient is its direction.
      const bool touched = (!update->is_factored() && (i == 3 || i == 40)) || i == 77 || i == 99;
      if (touched) {
        EXPECT_FALSE(std::isfinite(problem.x[at + i])) << i;
      } else {
        EXPECT_EQ(problem.x[at + i], clean.x[at + i]) << i;
      }
    }
  }
}

TEST(BucketUpdate, FirstAdamStepIsTheLearningRate) {
  // With zero state, m / sqrt(v) after bias correction is the sign of the gradient.
  BucketProblem<double> problem({5});
  problem.x.assign(problem.x.size(), 2.0);
  problem.state0.assign(problem.x.size(), 0.0);
  problem.state1.assign(problem.x.size(), 0.0);
  problem.grads[0] = {1e-3, 1, 1e3, -5, -1e-2};
  problem.apply(*make_update("adam", {{"eps", 0}}), {}, 0.25);
  for (std::size_t i = 0; i < 5; ++i) {
    const double sign = i < 3 ? 1 : -1;
    EXPECT_NEAR(problem.x[5 + i], 2.0 - 0.25 * sign, 4e-15);  // some 20 roundings of 1.1e-16
  }
}

// With rounds of one update accum_adam is Adam but for where beta1 stands: by hand, from zero
// states.
TEST(BucketUpdate, AccumAdamByHand) {
  BucketProblem<double> problem({1});
  const auto at = static_cast<std::size_t>(problem.slices[0].offset);
  problem.x[at] = 2, problem.grads[0][0] = 3;
  problem.state0[at] = problem.state1[at] = problem.state2[at] = 0;
  problem.slices[0].weight_decay = 0.5;
  problem.slices[0].updates = 2;
  const auto update =
      make_update("accum_adam", {{"betas", std::array{0.5, 0.75}}, {"eps", 0}, {"accum_iter", 2}});
  problem.apply(*update, {}, 0.25);
  // g = 3 + 0.5 * 2 = 4, a = 2; m' = 2, v' = 4, n = 1: x -= 0.25 / 0.5 * 2 / (2 / 0.5) = 0.25.
  EXPECT_DOUBLE_EQ(problem.x[at], 1.75);
  // The round ends: m = 0.5 * 0.5 * 2, v = 0.75 * 0.25 * 4.
  EXPECT_DOUBLE_EQ(problem.state0[at], 0.5);
  EXPECT_DOUBLE_EQ(problem.state1[at], 0.75);
  EXPECT_DOUBLE_EQ(problem.state2[at], 0.0);
}

TEST(GradientNorm, AddsUpAllGradientsOnAnyNumberOfThreads) {
  BucketProblem<float> problem({1, 100000, 17, 33});
  problem.slices[2].grad = nullptr;
  long double sum = 0;
  for (std::size_t i : {0, 1, 3}) {
    for (float g : problem.grads[i]) sum += static_cast<long double>(g) * g;
  }
  omp_set_num_threads(1);
  const double one = sum_of_squares(problem.slices, Scalar::float32);
  omp_set_num_threads(3);
  const double three = sum_of_squares(problem.slices, Scalar::float32);
  omp_set_num_threads(1);
  EXPECT_EQ(one, three);
  // Some 100000 / 16 additions a lane, each off by 1.1e-16 of at most the sum.
  EXPECT_NEAR(one, static_cast<double>(sum), 1e-12 * static_cast<double>(sum));
}

TEST(GradientNorm, IsTheSameOnEveryInstructionSet) {
  const BucketProblem<float> problem({1, 100000, 17, 33});
  const double sum = sum_of_squares(problem.slices, Scalar::float32);
  for (const BucketKernels& kernels : cpu_kernels_of_all_instruction_sets())
    EXPECT_EQ(sum_of_squares(problem.slices, Scalar::float32, &kernels), sum);
}

TEST(GradientNorm, ShowsWhatIsNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    BucketProblem<float> problem({40, 70});
    problem.grads[1][69] = bad;
    EXPECT_FALSE(std::isfinite(sum_of_squares(problem.slices, Scalar::float32)));
  }
  // The largest float squares without overflow in double.
  BucketProblem<float> large({1});
  large.grads[0][0] = std::numeric_limits<float>::max();
  EXPECT_TRUE(std::isfinite(sum_of_squares(large.slices, Scalar::float32)));
}

TEST(GradientNorm, GuardsWhatIsClipped) {
  std::array sums = {9.0, 16.0};
  double factor = 0, guard = 1;
  const Clipping clipping{.sums = sums.data(),
                          .count = 2,
                          .most = 0.5,
                          .loss_scale = 2,
                          .factor = &factor,
                          .guard = &guard};
  clipping.run();
  EXPECT_EQ(factor, clip_coefficient(5.0 / 2, 0.5) / 2);
  EXPECT_EQ(guard, 1);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    sums[1] = bad, guard = 1;
    clipping.run();
    EXPECT_TRUE(std::isnan(factor) && std::isnan(guard));
    sums[1] = 16;
    clipping.run();
    EXPECT_TRUE(std::isnan(factor) && std::isnan(guard)) << "for good";
  }
}

TEST(GradientNorm, ClipsAsTorchDoes) {
  EXPECT_EQ(clip_coefficient(0.5, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_coefficient(2.0, 1.0), 1.0 / (2.0 + 1e-6));
  EXPECT_EQ(clip_coefficient(0.0, 1.0), 1.0);
}

}  // namespace
}  // namespace decent
