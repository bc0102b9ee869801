// Gradients that come in other orders, late, never, or more than once.

#include <ATen/ops/mul.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "training.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::Loss;
using testing::Problem;
using testing::Settings;

constexpr double kOneEach = 1e-9;  // MiB: a bucket for every parameter

Settings pairs(int workers = 2, double bucket_mb = kOneEach) {
  return {.workers = workers,
          .topology = make_topology("ring", workers, 1),
          .gamma = 0.6,
          .bucket_mb = bucket_mb};
}

// A chain through all parameters in the order given for worker and step: gradients arrive in the
// reverse of it.
Problem chain(std::size_t parameters,
              const std::function<std::vector<std::size_t>(int, std::int64_t)>& order) {
  return {std::vector<std::vector<std::int64_t>>(parameters, {2, 3}),
          [order](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
            at::Tensor h = testing::scattered({2, 3}, testing::seed_of(rank, t));
            for (const std::size_t p : order(rank, t)) h = (h + x[p]).sin() + 0.1 * x[p] * x[p];
            return h.square().sum();
          }};
}

void expect_definition(const Settings& settings, const Problem& problem, std::int64_t steps = 8) {
  testing::expect_near(testing::train(settings, problem, steps),
                       testing::train_reference(settings, problem, steps),
                       std::to_string(settings.bucket_mb) + " MiB");
}

// Bucket sizes of one, two (of 128 bytes each) and all parameters.
constexpr double kBucketSizes[] = {kOneEach, 129.0 / 1024 / 1024, 25};

TEST(Arrival, OrderMayDifferInEveryStepAndOnEveryWorker) {
  const Problem problem = chain(6, [](int rank, std::int64_t t) {
    std::vector<std::size_t> order(6);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(),
                 std::mt19937(static_cast<unsigned>(100 * rank + static_cast<int>(t))));
    return order;
  });
  for (const double bucket_mb : kBucketSizes) {
    expect_definition(pairs(3, bucket_mb), problem);
    // Groups of three have no tags: their all-reduces meet in the order in which they were started.
    Settings group = pairs(3, bucket_mb);
    group.topology = make_topology("complete", 3, 1);
    expect_definition(group, problem);
  }
}

TEST(Arrival, BranchesMayAlternate) {
  const Problem problem = chain(5, [](int rank, std::int64_t t) {
    return (t + rank) % 2 == 0 ? std::vector<std::size_t>{0, 1, 2} : std::vector<std::size_t>{4, 3};
  });
  for (const double bucket_mb : kBucketSizes) expect_definition(pairs(2, bucket_mb), problem);
}

TEST(Arrival, TensorMayBeUsedTwice) {
  const Problem problem = chain(3, [](int, std::int64_t) {
    return std::vector<std::size_t>{1, 0, 2, 1};
  });
  for (const double bucket_mb : kBucketSizes) expect_definition(pairs(2, bucket_mb), problem);
}

// Worker 1 never uses parameter 1, nobody parameter 2; Adam's bias correction of parameter 3 counts
// its own updates.
Problem seldom_used() {
  return chain(4, [](int rank, std::int64_t t) {
    std::vector<std::size_t> order = {0};
    if (rank == 0) order.push_back(1);
    if (t % 3 == 0) order.push_back(3);
    return order;
  });
}

TEST(MissingGradient, StillMixesAndKeepsItsOwnCount) {
  for (const double bucket_mb : kBucketSizes) {
    expect_definition(pairs(2, bucket_mb), seldom_used(), 9);
  }
  const auto models = testing::train(pairs(), seldom_used(), 9);
  const at::Tensor start = seldom_used().parameters()[1].detach();
  EXPECT_FALSE(at::equal(models[1][1], start));  // from worker 0
  // From nobody: equal models mix to themselves, but for the rounding of 0.7 x + 0.3 x in each of 8
  // mixings.
  const at::Tensor change = models[0][2] - seldom_used().parameters()[2].detach();
  EXPECT_LE(change.abs().max().item<double>(), 8 * 3 * 1.2e-16);
}

TEST(MissingGradient, IsWarnedOfOnce) {
  const Problem problem = seldom_used();
  const auto warnings = testing::run_workers(2, [&](const testing::Worker& world) {
    std::string text;
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedOptions options = pairs().options();
    options.training.warn = [&text](const std::string& warning) { text += warning + "\n"; };
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 7; ++t) problem.loss(x, world->rank(), t).backward();
    parallel.global_avg(false);
    return text;
  });
  const auto count = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  for (const auto& [name, on_0, on_1] :
       {std::tuple("'p0'", 0, 0), {"'p1'", 0, 1}, {"'p2'", 1, 1}, {"'p3'", 1, 1}}) {
    EXPECT_EQ(count(warnings[0], name), on_0) << name << ": " << warnings[0];
    EXPECT_EQ(count(warnings[1], name), on_1) << name << ": " << warnings[1];
  }
  EXPECT_THAT(warnings[0], HasSubstr("step 1 "));
}

// Micro-batches of step t are losses 10 t, 10 t + 1, ..; the last one ends the step.
TEST(Accumulation, AddsUpAndMixesOnce) {
  const Problem micro = seldom_used();
  const Problem whole = {micro.shapes,
                         [&](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
                           return micro.loss(x, rank, 10 * t) + micro.loss(x, rank, 10 * t + 1) +
                                  micro.loss(x, rank, 10 * t + 2);
                         }};
  for (const UpdateTime time : {UpdateTime::in_backward, UpdateTime::after_backward}) {
    Settings settings = pairs();
    settings.update_time = time;
    const auto models = testing::run_workers(2, [&](const testing::Worker& world) {
      std::vector<at::Tensor> x = micro.parameters();
      DecentralizedParameters parallel(testing::named(x), {}, world, settings.options());
      for (std::int64_t t = 1; t <= 6; ++t) {
        const std::vector<at::Tensor> before = testing::copies(x);
        parallel.set_accumulate_grad(true);
        micro.loss(x, world->rank(), 10 * t).backward();
        micro.loss(x, world->rank(), 10 * t + 1).backward();
        testing::expect_same_bits({x}, {before}, "while accumulating");
        EXPECT_EQ(parallel.step(), t - 1);
        parallel.set_accumulate_grad(false);
        micro.loss(x, world->rank(), 10 * t + 2).backward();
        EXPECT_EQ(parallel.step(), t);
        for (const at::Tensor& p : x) EXPECT_FALSE(p.grad().defined());
      }
      const auto result = testing::copies(x);
      parallel.global_avg(false);
      return result;
    });
    testing::expect_near(models, testing::train_reference(settings, whole, 6));
  }
}

// Between micro-batches: the gradient that is there already stays, and belongs to the step that it
// was begun for.
TEST(Accumulation, GoesOnAfterAnAverage) {
  const Problem micro = testing::perceptron();
  const auto train = [&](bool averages) {
    return testing::run_workers(2, [&](const testing::Worker& world) {
      std::vector<at::Tensor> x = micro.parameters();
      DecentralizedParameters parallel(testing::named(x), {}, world, pairs().options());
      for (std::int64_t t = 1; t <= 4; ++t) {
        parallel.set_accumulate_grad(true);
        micro.loss(x, world->rank(), 10 * t).backward();
        if (averages) {
          parallel.global_avg(true);
          parallel.revert_global_avg();
        }
        parallel.set_accumulate_grad(false);
        micro.loss(x, world->rank(), 10 * t + 1).backward();
      }
      const auto result = testing::copies(x);
      parallel.global_avg(false);
      return result;
    });
  };
  testing::expect_same_bits(train(true), train(false));
}

TEST(Accumulation, GoesOnFromAnAverageThatIsKept) {
  const Problem micro = testing::perceptron();
  const auto models = testing::run_workers(2, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = micro.parameters();
    DecentralizedParameters parallel(testing::named(x), {}, world, pairs().options());
    micro.loss(x, world->rank(), 1).backward();
    parallel.set_accumulate_grad(true);
    micro.loss(x, world->rank(), 2).backward();
    parallel.global_avg(false);
    EXPECT_EQ(parallel.step(), 1);
    for (const at::Tensor& p : x) EXPECT_TRUE(p.grad().defined());
    const std::vector<at::Tensor> average = testing::copies(x);
    parallel.set_accumulate_grad(false);
    micro.loss(x, world->rank(), 3).backward();
    EXPECT_EQ(parallel.step(), 2);
    parallel.global_avg(false);
    return average;
  });
  testing::expect_same_bits({models[0]}, {models[1]});
}

// Weight 1 gets its gradient first; the backward of the product with weight 0 comes later and needs
// weight 1 as it was.
Problem used_through_detach() {
  return {{{4}, {4}}, [](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
            const at::Tensor early = x[0] * x[1].detach();
            const at::Tensor late = x[1] * testing::scattered({4}, testing::seed_of(rank, t));
            return early.sum() + late.sum();
          }};
}

TEST(WeightUsedThroughDetach, IsRefusedInBackward) {
  try {
    testing::train(pairs(1), used_through_detach(), 2);
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("modified by an inplace operation"));
  }
}

TEST(WeightUsedThroughDetach, IsRightAfterBackward) {
  for (const double bucket_mb : {kOneEach, 25.0}) {
    Settings settings = pairs(2, bucket_mb);
    settings.update_time = UpdateTime::after_backward;
    expect_definition(settings, used_through_detach());
  }
}

TEST(Hooks, GoWithTheWrapper) {
  std::vector<at::Tensor> x = testing::perceptron().parameters();
  {
    DecentralizedParameters parallel(testing::named(x), {}, make_single_worker(),
                                     pairs(1).options());
    testing::perceptron().loss(x, 0, 1).backward();
  }
  const auto before = testing::copies(x);
  testing::perceptron().loss(x, 0, 2).backward();
  testing::expect_same_bits({x}, {before});
  for (const at::Tensor& p : x) EXPECT_TRUE(p.grad().defined());
}

}  // namespace
}  // namespace decent
