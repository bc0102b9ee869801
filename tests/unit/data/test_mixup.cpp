// mixup: what it makes of batches, which numbers it draws, and what it refuses.

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/one_hot.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "../support/refusal.h"
#include "decent/data/samples.h"
#include "waves.h"

namespace decent {
namespace {

using testing::batch_of;
using ::testing::HasSubstr;
using testing::kClasses;
using testing::kXAndY;
using testing::refusal;
using testing::share_of;
using testing::Waves;

Samples mixed(std::unique_ptr<const Source> source, const Options& given = {},
              std::uint64_t seed = 3) {
  Transforms transforms;
  testing::add_batch_transform(transforms, "mixup", given);
  return Samples(std::move(source), std::move(transforms), seed);
}

TEST(Mixup, IsTorchvisions) {
  const Batch before = batch_of(Samples(std::make_unique<Waves>(20)), {10, 1, 17, 3});
  const Batch after = batch_of(mixed(std::make_unique<Waves>(20)), {10, 1, 17, 3});
  ASSERT_EQ(after.fields[1].sizes(), (std::vector<std::int64_t>{4, kClasses}));
  ASSERT_EQ(after.fields[1].scalar_type(), at::kFloat);
  const double own = share_of(after);
  EXPECT_GT(own, 0);
  EXPECT_LT(own, 1);
  const auto expected = [&](const at::Tensor& each) {  // MixUp of torchvision.transforms.v2
    return each.roll(1, 0).mul_(1 - own).add_(each.mul(own));
  };
  // `own` is a weight that was rounded to float32 once, here and in 1 - own.
  constexpr double kOneRounding = 1.2e-7;
  EXPECT_TRUE(after.fields[0].allclose(expected(before.fields[0]), 0, kOneRounding));
  const at::Tensor certain = at::one_hot(before.fields[1], kClasses).to(at::kFloat);
  EXPECT_TRUE(after.fields[1].allclose(expected(certain), 0, kOneRounding));
}

TEST(Mixup, TargetsThatAreNumbersStayNumbers) {
  const auto source = [] { return std::make_unique<Waves>(20, DType::float32, DType::float32); };
  const Batch before = batch_of(Samples(source()), {4, 8});
  const Batch after = batch_of(mixed(source()), {4, 8});
  ASSERT_EQ(after.fields[1].sizes(), (std::vector<std::int64_t>{2}));
  const auto share = [&](std::size_t field) {
    const at::Tensor all = before.fields[field].reshape({2, -1}).select(1, 0);
    const at::Tensor now = after.fields[field].reshape({2, -1}).select(1, 0);
    return ((now[0] - all[1]) / (all[0] - all[1])).item<double>();
  };
  EXPECT_NEAR(share(0), share(1), 1e-5);  // quotients of differences of float32
}

TEST(Mixup, IsTheSameWhicheverFieldsAreRead) {
  const Samples samples = mixed(std::make_unique<Waves>(20));
  const Batch both = batch_of(samples, {7, 9, 2});
  for (const std::size_t field : kXAndY) {
    const std::array<std::size_t, 1> wanted = {field};
    const std::array<std::int64_t, 3> indices = {7, 9, 2};
    EXPECT_TRUE(at::equal(samples.read(wanted, indices, 0, HostMemory::pageable).fields[0],
                          both.fields[field]));
  }
}

TEST(Mixup, WeightsDifferByBatchEpochAndSeed) {
  const Samples samples = mixed(std::make_unique<Waves>(20));
  const double weight = share_of(batch_of(samples, {0, 1}));
  EXPECT_EQ(weight, share_of(batch_of(samples, {0, 1})));
  EXPECT_NE(weight, share_of(batch_of(samples, {5, 1})));
  EXPECT_NE(weight, share_of(batch_of(samples, {0, 1}, 1)));
  EXPECT_NE(weight, share_of(batch_of(mixed(std::make_unique<Waves>(20), {}, 4), {0, 1})));
}

TEST(Mixup, OneSampleStaysAsItIs) {
  const Batch before = batch_of(Samples(std::make_unique<Waves>(20)), {6});
  const Batch after = batch_of(mixed(std::make_unique<Waves>(20)), {6});
  EXPECT_TRUE(after.fields[0].allclose(before.fields[0], 0, 1.2e-7));  // w x + (1 - w) x
  EXPECT_NEAR(after.fields[1][0][1].item<double>(), 1, 1.2e-7);
}

// Mean 1/2, variance 1 / (4 (2 alpha + 1)), fourth central moment 3 v^2 (2 a + 1) / (2 a + 3).
TEST(Mixup, WeightsAreOfTheBetaDistribution) {
  constexpr std::int64_t kDraws = 20000;
  for (const double alpha : {0.01, 0.2, 1.0, 4.0}) {
    const Samples samples = mixed(std::make_unique<Waves>(kClasses * kDraws),
                                  {{"alpha", alpha}, {"num_classes", kNull}});
    double mean = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const double distance = share_of(batch_of(samples, {kClasses * i, 1})) - 0.5;
      mean += distance / kDraws;
      squares += distance * distance / kDraws;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    const double fourth = 3 * variance * variance * (2 * alpha + 1) / (2 * alpha + 3);
    // Four standard errors: with fixed seeds, a test that passes once passes always.
    EXPECT_NEAR(mean, 0, 4 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares, variance, 4 * std::sqrt((fourth - variance * variance) / kDraws)) << alpha;
  }
}

TEST(Mixup, RefusesWhatItCannotMix) {
  const auto refused = [](std::unique_ptr<const Source> source, const Options& given) {
    return refusal([&] { batch_of(mixed(std::move(source), given), {1, 4}); });
  };
  const auto waves = [](DType x = DType::float32, DType y = DType::int64, bool names = true) {
    return std::make_unique<Waves>(20, x, y, names);
  };
  EXPECT_EQ(refused(waves(), {{"alpha", 0.0}}),
            "transform mixup: alpha: expected a number above 0");
  EXPECT_EQ(refused(waves(), {{"field", std::string("image")}}),
            "transform mixup: the data has no field 'image'; it has: x, y");
  EXPECT_EQ(refused(waves(), {{"target", std::string("x")}}),
            "transform mixup: field and target are both 'x'");
  EXPECT_EQ(refused(waves(DType::uint8), {}),
            "transform mixup: field 'x' is uint8; expected float32: put to_float in front of it");
  EXPECT_THAT(refused(waves(DType::float32, DType::uint8), {}), HasSubstr("field 'y' is uint8[]"));
  EXPECT_EQ(refused(waves(DType::float32, DType::int64, false), {}),
            "transform mixup: num_classes: the data names no classes; say how many there are");
  EXPECT_EQ(refused(waves(), {{"num_classes", std::int64_t{4}}}),
            "transform mixup: field 'y' has class 4; expected 0 to 3 (num_classes)");
}

}  // namespace
}  // namespace decent
