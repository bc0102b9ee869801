// adafactor against torch.optim.Adafactor, which torch's C++ does not have: what PyTorch 2.11 makes
// of the parameters and gradients below in float64.

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "decent/parallel/matrix_work.h"
#include "decent/parallel/optimizer_states.h"
#include "small_training.h"

namespace decent {
namespace {

using ::testing::ElementsAre;

// A vector, a matrix and a stack of matrices.
const std::vector<std::vector<std::int64_t>> kShapes = {{5}, {2, 3}, {2, 1, 2}};

at::Tensor counted_from(std::int64_t first, const std::vector<std::int64_t>& shape) {
  const std::int64_t numel = c10::multiply_integers(shape);
  return at::arange(first, first + numel, at::kDouble).view(shape);
}

at::Tensor gradient_in(std::int64_t t, const std::vector<std::int64_t>& shape) {
  return counted_from(1, shape).mul(t).sin();
}

struct AdafactorRun {
  Options own = {};
  double weight_decay = 0;
  double lr = 0.05;
  double bucket_mb = 25;
  bool by_columns = false;  // the memory of the matrix

  // The names of the three parameters are their places.
  NamedTensors parameters() const {
    NamedTensors all;
    for (const auto& shape : kShapes) {
      at::Tensor x = counted_from(0, shape).cos();
      if (by_columns && x.dim() == 2) x = x.t().contiguous().t();
      all.emplace_back(std::to_string(all.size()), x.requires_grad_());
    }
    return all;
  }

  testing::Options options() const {
    return {.training = {.update = make_update("adafactor", own),
                         .schedule = constant_lr(lr),
                         .weight_decay = weight_decay,
                         .bucket_mb = bucket_mb}};
  }

  void take_steps(std::int64_t steps, DecentralizedParameters& parallel,
                  const NamedTensors& of) const {
    for (std::int64_t t = parallel.step() + 1; t <= steps; ++t) {
      at::Tensor loss = at::zeros({}, at::kDouble);
      for (std::size_t p = 0; p < kShapes.size(); ++p)
        loss = loss + of[p].second.mul(gradient_in(t, kShapes[p])).sum();
      loss.backward();
    }
  }

  NamedTensors after_thirty_steps() const {
    NamedTensors all = parameters();
    DecentralizedParameters parallel(all, {}, make_single_worker(), options());
    take_steps(30, parallel, all);
    return all;
  }
};

void expect_values(const AdafactorRun& run, const std::vector<std::vector<double>>& expected) {
  const NamedTensors all = run.after_thirty_steps();
  for (std::size_t p = 0; p < expected.size(); ++p) {
    const at::Tensor wanted = at::tensor(expected[p], at::kDouble).view(kShapes[p]);
    // 30 steps of some 20 roundings of 1.1e-16 each of numbers below 4.
    EXPECT_TRUE(at::allclose(all[p].second.detach(), wanted, /*rtol=*/0, /*atol=*/1e-12)) << p;
  }
}

TEST(Adafactor, StepsAsPyTorchDoes) {
  expect_values(
      {.weight_decay = 0.1},
      {{0.9902134468455416, 0.5263207126999838, -0.4489151837482733, -0.9951246814242377,
        -0.6227695483264811},
       {0.8555208911305886, 0.4574874991772229, -0.38551094386742396, -0.8516299546198326,
        -0.5396528182679156, 0.556111306370225},
       {0.8443824115565941, 0.45219128786877344, -0.3937244197404037, -0.8427543680351571}});
  // eps1 bounds estimates, eps2 is above the size of the weights, d bounds no step.
  expect_values(
      {.own = {{"beta2_decay", -0.5}, {"eps1", 0.5}, {"eps2", 1.5}, {"d", 2.0}}},
      {{0.9944424134819151, 0.5392727094656231, -0.47014547114770505, -1.0057671749002655,
        -0.6113166289812366},
       {1.005646374472175, 0.533866840030006, -0.47172448359361513, -0.9925760007765615,
        -0.6225894959218674, 1.0731245067056958},
       {0.9921251454920265, 0.5489025090862071, -0.4862143442235039, -0.9749378118960617}});
}

// Its learning rate is above 1 / sqrt(t) from the fifth step on.
TEST(Adafactor, BoundsTheLearningRateAsPyTorchDoes) {
  expect_values({.lr = 0.5}, {{0.6538067859894817, 0.32234433479486607, -0.5115285260445701,
                               -0.7072606861994646, -0.29091201812564277},
                              {0.9492090036204452, 0.35306948671508936, -0.6084668180372864,
                               -0.8618532479775571, -0.3247903011981349, 3.8425542151996015},
                              {0.577011646171177, 0.28470862267895874, -0.4840376533701152,
                               -0.6023693323668569}});
}

TEST(Adafactor, DependsOnNeitherBucketsNorTheOrderInMemory) {
  const NamedTensors expected = AdafactorRun().after_thirty_steps();
  for (const AdafactorRun& run :
       {AdafactorRun{.bucket_mb = 1e-6}, AdafactorRun{.by_columns = true}}) {
    const NamedTensors all = run.after_thirty_steps();
    for (std::size_t p = 0; p < all.size(); ++p)
      EXPECT_TRUE(at::allclose(all[p].second, expected[p].second, 0, 1e-12)) << p;  // as above
  }
}

TEST(Adafactor, RemembersRowsAndColumns) {
  const AdafactorRun run;
  const NamedTensors all = run.parameters();
  const DecentralizedParameters parallel(all, {}, make_single_worker(), run.options());
  std::map<std::string, std::vector<std::int64_t>> extents;
  for (const auto& [name, tensor] : parallel.training_state())
    if (name.starts_with("optimizer.") && !name.ends_with(".step"))
      extents[name] = tensor.sizes().vec();
  EXPECT_THAT(extents,
              ElementsAre(std::pair("optimizer.0.variance", std::vector<std::int64_t>{5}),
                          std::pair("optimizer.1.col_var", std::vector<std::int64_t>{1, 3}),
                          std::pair("optimizer.1.row_var", std::vector<std::int64_t>{2, 1}),
                          std::pair("optimizer.2.col_var", std::vector<std::int64_t>{2, 1, 2}),
                          std::pair("optimizer.2.row_var", std::vector<std::int64_t>{2, 1, 1})));
  // 5 + (2 + 3) + (2 + 4) doubles, and the largest bucket.
  EXPECT_EQ(bytes_of_states(*run.options().training.update, all, {80, 64}), 16 * 8 + 80);
}

TEST(Adafactor, GoesOnFromItsState) {
  const AdafactorRun run;
  const NamedTensors wanted = run.after_thirty_steps();
  const NamedTensors first = run.parameters(), second = run.parameters();
  DecentralizedParameters before(first, {}, make_single_worker(), run.options());
  run.take_steps(10, before, first);
  DecentralizedParameters after(second, {}, make_single_worker(), run.options());
  const at::NoGradGuard no_grad;
  const NamedTensors from = before.training_state(), to = after.training_state();
  for (std::size_t i = 0; i < to.size(); ++i) at::Tensor(to[i].second).copy_(from[i].second);
  after.resume_from(10, from);
  const at::AutoGradMode with_grad(true);
  run.take_steps(30, after, second);
  for (std::size_t p = 0; p < wanted.size(); ++p)
    EXPECT_TRUE(at::equal(second[p].second, wanted[p].second)) << p;
}

TEST(FactoredStep, ChangesNoFactorIfTheScaleIsNotANumber) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor x = counted_from(1, {2, 3});
  for (const double* scale : {static_cast<const double*>(nullptr), &kNothing}) {
    NamedTensors factors;
    for (const auto& [name, extents] : factor_extents(x.sizes()))
      factors.emplace_back(name, at::zeros(extents, at::kDouble));
    BucketStep step;
    step.scalar = Scalar::float64;
    step.device_scale = scale;
    take_factored_step(step, {.rho = 0.1},
                       {.x = x, .grad = x, .direction = at::zeros_like(x), .factors = factors});
    EXPECT_EQ(factors[0].second.sum().item<double>() == 0, scale != nullptr);
  }
}

}  // namespace
}  // namespace decent
