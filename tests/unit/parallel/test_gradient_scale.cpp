// What gradients are multiplied with, against torch.nn.utils.clip_grad_norm_ and the rules of
// torch.amp.GradScaler worked out by hand.

#include "decent/parallel/gradient_scale.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "decent/core/error.h"

namespace decent {
namespace {

// Parameters a and b of one element each, in a bucket of their own.
struct TwoBuckets {
  explicit TwoBuckets(double grad_a, double grad_b) : gradients{grad_a, grad_b} {}

  BucketSlice slice(std::size_t b) const {
    return {.offset = 0, .numel = 1, .grad = &gradients[b], .updates = 1};
  }
  void measure(GradientScale& scale) const {
    for (const std::size_t b : {0, 1}) scale.measure(b, std::array{slice(b)});
    scale.measured();
  }
  double of(GradientScale& scale, std::size_t b) const {
    const GradientFactor factor = scale.of(b, std::array{slice(b)});
    return factor.grad_scale * (factor.device_scale != nullptr ? *factor.device_scale : 1);
  }

  std::array<double, 2> gradients;
  NamedTensors parameters = {{"a", at::zeros({1}, at::kDouble)},
                             {"b", at::zeros({1}, at::kDouble)}};
  std::vector<Bucket> buckets = {{parameters[0].second, {0}, {0}},
                                 {parameters[1].second, {1}, {0}}};
};

// clip_grad_norm_ multiplies with max_norm / (norm + 1e-6) where that is below 1.
double clipped(double max_norm, double norm) { return std::min(1.0, max_norm / (norm + 1e-6)); }

TEST(GradientScale, IsOneWithoutClippingAndScaler) {
  const TwoBuckets two(3, 4);
  GradientScale scale({}, std::nullopt, two.buckets, two.parameters);
  scale.begin_step(1);
  EXPECT_EQ(two.of(scale, 0), 1);
  scale.end_step();
  EXPECT_EQ(scale.norm(), std::nullopt);
  EXPECT_EQ(scale.loss_scale(), 1);
  EXPECT_FALSE(scale.scales_loss());
  EXPECT_TRUE(scale.state().empty());
}

TEST(GradientScale, ClipsByTheNormOfAll) {
  const TwoBuckets two(3, 4);
  GradientScale scale({.norm = 2}, std::nullopt, two.buckets, two.parameters);
  scale.begin_step(1);
  two.measure(scale);
  EXPECT_DOUBLE_EQ(two.of(scale, 0), clipped(2, 5));
  EXPECT_DOUBLE_EQ(two.of(scale, 1), clipped(2, 5));
  scale.end_step();
  EXPECT_EQ(scale.norm(), 5);
}

TEST(GradientScale, ClipsEachBucketByItsOwn) {
  const TwoBuckets two(3, 4);
  GradientScale scale({.norm = 3.5, .each_bucket = true}, std::nullopt, two.buckets,
                      two.parameters);
  for (const std::int64_t step : {1, 2}) {  // the second forgets the first's squares
    scale.begin_step(step);
    EXPECT_EQ(two.of(scale, 0), 1);
    EXPECT_DOUBLE_EQ(two.of(scale, 1), clipped(3.5, 4));
    scale.end_step();
    EXPECT_EQ(scale.norm(), 5);
  }
}

TEST(GradientScale, TakesTheLossScaleOut) {
  const TwoBuckets two(3 * 8.0, 4 * 8.0);
  GradientScale scale({.norm = 2}, LossScalerOptions{.init_scale = 8}, two.buckets, two.parameters);
  EXPECT_EQ(scale.loss_scale(), 8);
  scale.begin_step(1);
  two.measure(scale);
  EXPECT_DOUBLE_EQ(two.of(scale, 0), clipped(2, 5) / 8);
  scale.end_step();
  EXPECT_EQ(scale.norm(), 5);
}

TEST(GradientScale, LosesAnOverflowAndScalesLess) {
  const TwoBuckets two(1, HUGE_VAL);
  GradientScale scale({}, LossScalerOptions{.init_scale = 8, .backoff_factor = 0.5}, two.buckets,
                      two.parameters);
  scale.begin_step(1);
  EXPECT_FALSE(scale.overflowed());
  two.measure(scale);
  EXPECT_TRUE(scale.overflowed());
  scale.end_step();
  EXPECT_TRUE(scale.overflowed());  // until the next step
  EXPECT_EQ(scale.loss_scale(), 4);
  scale.begin_step(2);
  EXPECT_FALSE(scale.overflowed());
}

TEST(GradientScale, GoesOnFromWhatItWas) {
  const TwoBuckets two(1, 1);
  const LossScalerOptions options{.init_scale = 8, .growth_factor = 2, .growth_interval = 2};
  GradientScale first({}, options, two.buckets, two.parameters);
  const auto step = [&](GradientScale& scale, std::int64_t number) {
    scale.begin_step(number);
    two.measure(scale);
    scale.end_step();
  };
  step(first, 1);
  const NamedTensors state = first.state();
  EXPECT_EQ(state[0].first, "scaler.scale");
  EXPECT_EQ(state[1].first, "scaler.growth_tracker");
  GradientScale second({}, options, two.buckets, two.parameters);
  second.restore([&](const std::string& name) -> const at::Tensor& {
    return name == state[0].first ? state[0].second : state[1].second;
  });
  step(second, 2);
  EXPECT_EQ(second.loss_scale(), 16);  // after two good steps
}

TEST(GradientScale, NamesAGradientThatIsNotFinite) {
  const TwoBuckets two(1, NAN);
  const std::string message = "the gradient of parameter 'b' in step 7 is not finite";
  GradientScale of_all({.norm = 2}, std::nullopt, two.buckets, two.parameters);
  of_all.begin_step(7);
  GradientScale of_each({.norm = 2, .each_bucket = true}, std::nullopt, two.buckets,
                        two.parameters);
  of_each.begin_step(7);
  EXPECT_EQ(two.of(of_each, 0), 1);
  const auto expect_diverged = [&](const std::function<void()>& act) {
    try {
      act();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::diverged);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(message));
    }
  };
  expect_diverged([&] { two.measure(of_all); });
  expect_diverged([&] { two.of(of_each, 1); });
}

}  // namespace
}  // namespace decent
