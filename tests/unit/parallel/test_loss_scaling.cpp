// A loss scaler around the update: what is scaled comes out unscaled, what overflows is mixed only.

#include <gtest/gtest.h>

#include <cmath>

#include "training.h"

namespace decent {
namespace {

using testing::Problem;
using testing::Settings;

Settings two_workers() {
  return {.workers = 2, .topology = make_topology("ring", 2, 1), .bucket_mb = 3e-4};
}

// Worker 1 overflows in steps 2 and 5, worker 0 in step 5.
bool overflows(int rank, std::int64_t t) { return t == 5 || (t == 2 && rank == 1); }

struct Scaled {
  std::vector<at::Tensor> parameters;
  std::vector<double> scales;  // of each step
  std::vector<bool> overflowed;
};

std::vector<Scaled> train_scaled(const Settings& settings, const Problem& problem,
                                 const DecentralizedOptions& options, std::int64_t steps,
                                 bool with_overflows) {
  return testing::run_workers(settings.workers, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    Scaled result;
    for (std::int64_t t = 1; t <= steps; ++t) {
      result.scales.push_back(parallel.loss_scale());
      const bool overflow = with_overflows && overflows(world->rank(), t);
      (problem.loss(x, world->rank(), t) * (overflow ? HUGE_VAL : parallel.loss_scale()))
          .backward();
      result.overflowed.push_back(parallel.overflowed());
      EXPECT_EQ(parallel.step(), t);
    }
    result.parameters = testing::copies(x);
    parallel.global_avg(false);
    return result;
  });
}

testing::Models models_of(const std::vector<Scaled>& all) {
  testing::Models models;
  for (const Scaled& one : all) models.push_back(one.parameters);
  return models;
}

// A scale that is a power of two takes nothing away and adds nothing.
TEST(LossScaling, ChangesNoBitWithoutOverflow) {
  const Problem problem = testing::perceptron();
  for (const ClipOptions clip :
       {ClipOptions{}, ClipOptions{.norm = 0.5}, ClipOptions{.norm = 0.1, .each_bucket = true}}) {
    DecentralizedOptions plain = two_workers().options();
    plain.training.clip = clip;
    DecentralizedOptions scaled = plain;
    scaled.training.loss_scaler = LossScalerOptions{.init_scale = 1024, .growth_interval = 2};
    testing::expect_same_bits(models_of(train_scaled(two_workers(), problem, scaled, 6, false)),
                              models_of(train_scaled(two_workers(), problem, plain, 6, false)));
  }
}

TEST(LossScaling, MixesWithoutUpdateOnOverflow) {
  const Problem problem = testing::perceptron();
  // The same in the reference: a step in which no parameter has a gradient.
  const Problem without = {problem.shapes,
                           [&](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
                             if (!overflows(rank, t)) return problem.loss(x, rank, t);
                             return at::zeros({}, at::kDouble).requires_grad_();
                           }};
  DecentralizedOptions options = two_workers().options();
  options.training.loss_scaler = LossScalerOptions{.init_scale = 64, .growth_interval = 2};
  const auto all = train_scaled(two_workers(), problem, options, 8, true);
  testing::expect_near(models_of(all), testing::train_reference(two_workers(), without, 8));
  EXPECT_EQ(all[0].scales, (std::vector<double>{64, 64, 128, 128, 256, 128, 128, 256}));
  EXPECT_EQ(all[1].scales, (std::vector<double>{64, 64, 32, 32, 64, 32, 32, 64}));
  for (int rank = 0; rank < 2; ++rank) {
    for (std::int64_t t = 1; t <= 8; ++t) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)].overflowed[static_cast<std::size_t>(t - 1)],
                overflows(rank, t));
    }
  }
}

TEST(LossScaling, TellsTheUnscaledNorm) {
  const Problem problem = testing::perceptron();
  const auto norms = [&](bool scaled) {
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedOptions options = Settings{.topology = make_topology("ring", 1, 1)}.options();
    options.training.clip.norm = 0.3;
    if (scaled) options.training.loss_scaler = LossScalerOptions{.init_scale = 256};
    DecentralizedParameters parallel(testing::named(x), {}, make_single_worker(), options);
    (problem.loss(x, 0, 1) * parallel.loss_scale()).backward();
    const double norm = parallel.grad_norm().value();
    (problem.loss(x, 0, 2) * (scaled ? HUGE_VAL : 1.0)).backward();
    EXPECT_EQ(std::isfinite(parallel.grad_norm().value()), !scaled);
    return norm;
  };
  EXPECT_EQ(norms(true), norms(false));
}

TEST(LossScaling, EndsWhereNoScaleHelps) {
  const Problem problem = testing::perceptron();
  DecentralizedOptions options = Settings{.topology = make_topology("ring", 1, 1)}.options();
  options.training.loss_scaler = LossScalerOptions{.init_scale = 1, .backoff_factor = 0.0625};
  std::vector<at::Tensor> x = problem.parameters();
  DecentralizedParameters parallel(testing::named(x), {}, make_single_worker(), options);
  for (int t = 1; t <= 6; ++t) (problem.loss(x, 0, t) * HUGE_VAL).backward();
  EXPECT_EQ(parallel.loss_scale(), 0x1p-24);
  try {
    (problem.loss(x, 0, 7) * HUGE_VAL).backward();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    EXPECT_NE(std::string(error.what()).find("in step 7 is not finite"), std::string::npos);
  }
}

TEST(LossScaling, IsPartOfTheTrainingState) {
  const Problem problem = testing::perceptron();
  DecentralizedOptions options = Settings{.topology = make_topology("ring", 1, 1)}.options();
  options.training.loss_scaler = LossScalerOptions{.init_scale = 256, .growth_interval = 10};
  std::vector<at::Tensor> x = problem.parameters();
  DecentralizedParameters first(testing::named(x), {}, make_single_worker(), options);
  (problem.loss(x, 0, 1) * HUGE_VAL).backward();
  (problem.loss(x, 0, 2) * first.loss_scale()).backward();
  NamedTensors state = first.training_state();
  EXPECT_EQ(state[state.size() - 2].first, "scaler.scale");
  EXPECT_EQ(state[state.size() - 1].first, "scaler.growth_tracker");

  std::vector<at::Tensor> y = problem.parameters();
  DecentralizedParameters second(testing::named(y), {}, make_single_worker(), options);
  second.resume_from(2, state);
  EXPECT_EQ(second.loss_scale(), 128);
  EXPECT_EQ(second.training_state().back().second.item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace decent
