// Averaged gradients: N workers train what one worker with the mean of their losses would.

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <map>

#include "decent/core/error.h"
#include "decent/parallel/distributed_parameters.h"
#include "training.h"

namespace decent {
namespace {

using testing::Models;
using testing::Problem;
using testing::Settings;

constexpr std::int64_t kTrainedSteps = 12;
constexpr double kFewInABucket = 3e-4;  // several parameters in one, a bucket each for others

struct Variant {
  bool adamw = true;
  double bucket_mb = 25;
  UpdateTime update_time = UpdateTime::in_backward;
  std::string comm_dtype = "fp32";
};

DistributedDataParallelOptions options_of(const Variant& variant) {
  const Settings like{.topology = {},
                      .adamw = variant.adamw,
                      .bucket_mb = variant.bucket_mb,
                      .update_time = variant.update_time};
  return {.training = like.options().training, .comm_dtype = variant.comm_dtype};
}

struct DistributedSession {
  DistributedParameters& parallel;
  Communicator& world;
  std::vector<at::Tensor>& parameters;
  std::int64_t t;
};

Models train(
    int workers, const Problem& problem, const DistributedDataParallelOptions& options,
    std::int64_t steps,
    const std::function<void(DistributedSession)>& after_step = [](const DistributedSession&) {}) {
  return testing::run_workers(workers, [&](const testing::Worker& world) {
    std::vector<at::Tensor> parameters = problem.parameters();
    DistributedParameters parallel(testing::named(parameters), {}, world, options);
    for (std::int64_t t = 1; t <= steps; ++t) {
      problem.loss(parameters, world->rank(), t).backward();
      EXPECT_EQ(parallel.step(), t);
      after_step({parallel, *world, parameters, t});
    }
    world->barrier();  // nobody leaves while another reads
    return testing::copies(parameters);
  });
}

Problem mean_over(const Problem& problem, int workers) {
  return {problem.shapes, [=](const std::vector<at::Tensor>& x, int, std::int64_t t) {
            at::Tensor sum = at::zeros({}, at::kDouble);
            for (int rank = 0; rank < workers; ++rank) sum = sum + problem.loss(x, rank, t);
            return sum / workers;
          }};
}

// What every one of `workers` should come to.
Models expected(int workers, const Problem& problem, bool adamw, std::int64_t steps) {
  const Settings one{.topology = make_topology("ring", 1, 1), .adamw = adamw};
  const Models of_one = testing::train_reference(one, mean_over(problem, workers), steps);
  return Models(static_cast<std::size_t>(workers), of_one[0]);
}

void expect_alike(const Models& models) {
  for (const auto& model : models) testing::expect_same_bits({model}, {models[0]});
}

class Distributed : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, Distributed, ::testing::Values(1, 2, 3, 4));

TEST_P(Distributed, EqualsOneWorkerWithTheMeanLoss) {
  const Problem problem = testing::perceptron();
  for (const Variant& variant :
       {Variant{}, Variant{.adamw = false, .bucket_mb = kFewInABucket},
        Variant{.bucket_mb = kFewInABucket, .update_time = UpdateTime::after_backward},
        Variant{.bucket_mb = 1e-9}}) {
    const Models models = train(GetParam(), problem, options_of(variant), kTrainedSteps);
    testing::expect_near(models, expected(GetParam(), problem, variant.adamw, kTrainedSteps));
    expect_alike(models);
  }
}

// p1 is used by one worker in turn, and by nobody in every fifth step; p2 by worker 0 alone; p3
// never.
Problem with_unused() {
  return {{{4, 3}, {4}, {2, 4}, {5, 2}},
          [](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
            const at::Tensor input = testing::scattered({6, 3}, testing::seed_of(rank, t));
            at::Tensor hidden = at::linear(input, x[0]);
            if (t % 5 != 0 && t % 3 == rank) hidden = hidden + x[1];
            if (rank == 0) hidden = at::linear(hidden.tanh(), x[2]);
            return hidden.square().mean();
          }};
}

TEST_P(Distributed, CountsAParameterThatSomeDoNotUseAsZeroThere) {
  const Problem problem = with_unused();
  const Models wanted = expected(GetParam(), problem, true, kTrainedSteps);
  EXPECT_TRUE(at::equal(wanted[0][3], problem.parameters()[3]));  // it does not even decay
  for (const double bucket_mb : {25.0, kFewInABucket}) {
    const Models models =
        train(GetParam(), problem, options_of({.bucket_mb = bucket_mb}), kTrainedSteps);
    testing::expect_near(models, wanted);
    expect_alike(models);
  }
}

TEST(DistributedWarning, NamesWhatNobodyUses) {
  std::array<std::vector<std::string>, 2> warnings;
  testing::run_workers(2, [&](const testing::Worker& world) {
    const Problem problem = with_unused();
    std::vector<at::Tensor> x = problem.parameters();
    DistributedDataParallelOptions options = options_of({});
    options.training.warn = [&](const std::string& text) {
      warnings[static_cast<std::size_t>(world->rank())].push_back(text);
    };
    DistributedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 3; ++t) problem.loss(x, world->rank(), t).backward();
    world->barrier();
    return testing::Nothing();
  });
  // Step 2 would be worker 2's turn to use p1.
  EXPECT_EQ(warnings[0],
            (std::vector<std::string>{
                "step 1 gave no gradient to 'p3' on any worker: not updated in such steps",
                "step 2 gave no gradient to 'p1' on any worker: not updated in such steps"}));
  EXPECT_EQ(warnings[1], warnings[0]);
}

TEST(DistributedBf16, IsOffByTheRoundingsAlone) {
  constexpr int kWorkers = 3;
  const Problem problem = testing::perceptron();
  DistributedDataParallelOptions options = options_of({.comm_dtype = "bf16"});
  options.training.update = make_update("sgd");
  options.training.schedule = constant_lr(1.0);
  options.training.weight_decay = 0;
  const Models models = train(kWorkers, problem, options, 1);
  expect_alike(models);
  std::vector<std::vector<at::Tensor>> gradients;
  for (int rank = 0; rank < kWorkers; ++rank) {
    std::vector<at::Tensor> x = problem.parameters();
    problem.loss(x, rank, 1).backward();
    for (at::Tensor& each : x) each = each.grad();
    gradients.push_back(x);
  }
  double error = 0;
  for (std::size_t p = 0; p < problem.shapes.size(); ++p) {
    at::Tensor mean = at::zeros_like(gradients[0][p]);
    at::Tensor size = at::zeros_like(mean);
    for (const auto& of_worker : gradients) {
      mean += of_worker[p] / kWorkers;
      size += of_worker[p].abs() / kWorkers;
    }
    // Each addend is rounded once, and each of the two sums, none of which is larger than the sum
    // of sizes: 2^-8 is bfloat16's distance to the next number over the number, half of it the
    // error of a rounding; the last 1 % is for roundings of roundings.
    const at::Tensor bound = size * (1.01 * 3 * std::ldexp(1.0, -9)) + 1e-15;
    const at::Tensor off = (problem.parameters()[p] - models[0][p] - mean).abs();
    EXPECT_TRUE(off.le(bound).all().item<bool>()) << "parameter " << p;
    if (off.numel() > 0) error = std::max(error, off.max().item<double>());
  }
  EXPECT_GT(error, 1e-6);  // it was rounded
}

// Worker 1 overflows in steps 2 and 5, worker 0 in step 5.
bool overflows(int rank, std::int64_t t) { return t == 5 || (t == 2 && rank == 1); }

TEST(DistributedLossScaling, OneOverflowKeepsAllFromTheUpdate) {
  const Problem problem = testing::perceptron();
  DistributedDataParallelOptions options = options_of({.bucket_mb = kFewInABucket});
  options.training.loss_scaler = LossScalerOptions{.init_scale = 64, .growth_interval = 2};
  const auto all = testing::run_workers(2, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DistributedParameters parallel(testing::named(x), {}, world, options);
    std::vector<double> scales;
    for (std::int64_t t = 1; t <= 8; ++t) {
      scales.push_back(parallel.loss_scale());
      const bool overflow = overflows(world->rank(), t);
      (problem.loss(x, world->rank(), t) * (overflow ? HUGE_VAL : parallel.loss_scale()))
          .backward();
      EXPECT_EQ(parallel.overflowed(), t == 2 || t == 5);
    }
    world->barrier();
    return std::pair(testing::copies(x), scales);
  });
  // As in PyTorch's GradScaler, the count of steps without overflow begins anew.
  const std::vector<double> scales = {64, 64, 32, 32, 64, 32, 32, 64};
  EXPECT_EQ(all[0].second, scales);
  EXPECT_EQ(all[1].second, scales);
  const Problem without = {problem.shapes,
                           [&](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
                             if (t != 2 && t != 5) return problem.loss(x, rank, t);
                             return at::zeros({}, at::kDouble).requires_grad_();
                           }};
  testing::expect_near({all[0].first, all[1].first}, expected(2, without, true, 8));
}

TEST(DistributedClip, IsOfTheMeanGradient) {
  const Problem problem = testing::perceptron();
  constexpr double kNorm = 0.01;
  DistributedDataParallelOptions options = options_of({.bucket_mb = kFewInABucket});
  options.training.update = make_update("sgd");
  options.training.schedule = constant_lr(1.0);
  options.training.weight_decay = 0;
  options.training.clip = {.norm = kNorm};
  std::vector<at::Tensor> x = problem.parameters();
  mean_over(problem, 2).loss(x, 0, 1).backward();
  std::vector<at::Tensor> flat;
  for (const at::Tensor& each : x) flat.push_back(each.grad().flatten());
  const at::Tensor mean = at::cat(flat);
  const double norm = mean.norm().item<double>();
  const Models models = train(2, problem, options, 1, [&](const DistributedSession& session) {
    EXPECT_NEAR(session.parallel.grad_norm().value(), norm, 1e-12);
  });
  std::vector<at::Tensor> moved;
  for (std::size_t p = 0; p < models[0].size(); ++p)
    moved.push_back((problem.parameters()[p] - models[0][p]).flatten());
  const at::Tensor wanted = mean * std::min(1.0, kNorm / (norm + 1e-6));
  EXPECT_LE((at::cat(moved) - wanted).abs().max().item<double>(), 1e-12);
}

TEST(DistributedAccumulation, AddsUpBeforeItSends) {
  const Problem problem = with_unused();
  const DistributedDataParallelOptions options = options_of({.bucket_mb = kFewInABucket});
  constexpr int kMicro = 3;
  // A parameter that only an earlier micro-batch used counts, too.
  const Problem mean = {problem.shapes,
                        [&](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
                          at::Tensor sum = at::zeros({}, at::kDouble);
                          for (int a = 0; a < kMicro; ++a)
                            sum = sum + problem.loss(x, rank, kMicro * (t - 1) + a + 1);
                          return sum / kMicro;
                        }};
  const Models models = testing::run_workers(2, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DistributedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 5; ++t) {
      for (int a = 0; a < kMicro; ++a) {
        parallel.set_accumulate_grad(a + 1 < kMicro);
        (problem.loss(x, world->rank(), kMicro * (t - 1) + a + 1) / kMicro).backward();
      }
    }
    world->barrier();
    return testing::copies(x);
  });
  testing::expect_near(models, expected(2, mean, true, 5));
}

TEST(DistributedResume, GoesOnWithTheSameBits) {
  const Problem problem = with_unused();
  const DistributedDataParallelOptions options = options_of({.bucket_mb = kFewInABucket});
  const Models undisturbed = train(3, problem, options, 8);
  const Models resumed = testing::run_workers(3, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    NamedTensors saved;
    {
      DistributedParameters parallel(testing::named(x), {}, world, options);
      for (std::int64_t t = 1; t <= 5; ++t) problem.loss(x, world->rank(), t).backward();
      for (const auto& [name, tensor] : parallel.training_state())
        saved.emplace_back(name, tensor.clone());
    }
    std::vector<at::Tensor> y = problem.parameters(7);
    DistributedParameters parallel(testing::named(y), {}, world, options);
    const NamedTensors state = parallel.training_state();
    const std::map<std::string, at::Tensor> by_name(saved.begin(), saved.end());
    for (const auto& [name, tensor] : state) tensor.copy_(by_name.at(name));
    parallel.resume_from(5, state);
    for (std::int64_t t = 6; t <= 8; ++t) problem.loss(y, world->rank(), t).backward();
    world->barrier();
    return testing::copies(y);
  });
  testing::expect_same_bits(resumed, undisturbed);
}

TEST(DistributedAverage, AveragesBuffersAndLeavesTheWeights) {
  const Problem problem = testing::perceptron();
  testing::run_workers(3, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    const at::Tensor buffer = at::zeros({2}, at::kDouble);
    DistributedParameters parallel(testing::named(x), {{"b", buffer}}, world, options_of({}));
    problem.loss(x, world->rank(), 1).backward();
    buffer.fill_(world->rank());
    const std::vector<at::Tensor> before = testing::copies(x);
    EXPECT_EQ(parallel.global_avg(true, true), 0.0);
    EXPECT_TRUE(at::equal(buffer, at::ones_like(buffer)));
    testing::expect_same_bits({testing::copies(x)}, {before});
    parallel.revert_global_avg();
    EXPECT_EQ(buffer[0].item<double>(), world->rank());
    // Copies that are not alike after all, as those of processors that round differently may be.
    x[0].detach().add_(world->rank());
    EXPECT_NEAR(parallel.global_avg(true, true).value(), std::sqrt(30.0 * 2 / 3), 1e-12);
    parallel.revert_global_avg();
    EXPECT_TRUE(at::equal(x[0].detach(), before[0] + world->rank()));
    return testing::Nothing();
  });
}

// ---- for an optimizer of the caller's own ---------------------------------------------------

TEST_P(Distributed, GivesMeanGradientsToAnOptimizerOfTheCallersOwn) {
  const Problem problem = with_unused();
  for (const char* comm_dtype : {"fp32", "bf16"}) {
    const int workers = GetParam();
    testing::run_workers(workers, [&](const testing::Worker& world) {
      std::vector<at::Tensor> x = problem.parameters();
      DistributedParameters parallel(
          testing::named(x), {}, world,
          {.training = {.bucket_mb = kFewInABucket}, .comm_dtype = comm_dtype});
      torch::optim::SGD optimizer(x, torch::optim::SGDOptions(0.1));
      for (std::int64_t t = 1; t <= 5; ++t) {
        std::vector<at::Tensor> y;
        for (const at::Tensor& each : x) y.push_back(each.detach().clone().requires_grad_());
        mean_over(problem, workers).loss(y, 0, t).backward();
        optimizer.zero_grad();
        problem.loss(x, world->rank(), t).backward();
        // bfloat16: as in IsOffByTheRoundingsAlone, with gradients below 1 and up to 4 workers.
        const double tolerance = std::string(comm_dtype) == "fp32" ? 1e-14 : 5 * 0.002;
        for (std::size_t p = 0; p < x.size(); ++p) {
          EXPECT_EQ(x[p].grad().defined(), y[p].grad().defined()) << "parameter " << p;
          if (!x[p].grad().defined()) continue;
          EXPECT_LE((x[p].grad() - y[p].grad()).abs().max().item<double>(), tolerance);
        }
        optimizer.step();
      }
      EXPECT_EQ(parallel.step(), 5);
      EXPECT_THROW(parallel.get_lr(), std::logic_error);
      EXPECT_EQ(parallel.global_avg(false, true), 0.0);  // nobody's copy has left the others'
      return testing::Nothing();
    });
  }
}

// As autograd without this library: what is not set to zero is added to.
TEST(DistributedGradients, AreAddedToWhatIsThere) {
  const Problem problem = testing::perceptron();
  testing::run_workers(2, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DistributedParameters parallel(testing::named(x), {}, world,
                                   {.training = {.bucket_mb = kFewInABucket}});
    std::vector<at::Tensor> y = problem.parameters();
    for (std::int64_t t = 1; t <= 3; ++t) {
      problem.loss(x, world->rank(), t).backward();
      mean_over(problem, 2).loss(y, 0, t).backward();
      for (std::size_t p = 0; p < x.size(); ++p) {
        if (x[p].numel() == 0) continue;
        EXPECT_LE((x[p].grad() - y[p].grad()).abs().max().item<double>(), 1e-14);
      }
    }
    world->barrier();
    return testing::Nothing();
  });
}

}  // namespace
}  // namespace decent
