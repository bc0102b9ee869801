// Weights exchanged in bfloat16.

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/exchange/methods.h"
#include "training.h"

namespace decent {
namespace {

using testing::Settings;

// Edges of 1 to 5 members, unequal weights.
const std::vector<Phase> kFivePhases = {{{{0, 3}, 0.7}, {{1}, 1.0}, {{2, 4}, 0.5}},
                                        {{{0, 1, 2}, 0.3}, {{3, 4}, 0.2}},
                                        {{{0, 1, 2, 3}, 0.25}, {{4}, 1.0}},
                                        {{{0, 1, 2, 3, 4}, 0.4}}};

TEST(RoundedExchange, MixesAsDefined) {
  for (const double gamma : {1.0, 0.6}) {
    const Settings settings{.workers = 5,
                            .topology = kFivePhases,
                            .gamma = gamma,
                            .bucket_mb = 3e-4,
                            .exchange = "bf16"};
    const auto problem = testing::perceptron();
    testing::expect_near(testing::train(settings, problem, 9),
                         testing::train_reference(settings, problem, 9));
  }
}

TEST(RoundedExchange, GoesBackFromAnAverage) {
  Settings settings{.workers = 5, .topology = kFivePhases};
  settings.exchange = "bf16";
  const auto problem = testing::perceptron();
  const auto averages = [](const testing::Session& session) {
    session.parallel.global_avg(true);
    session.parallel.revert_global_avg();
  };
  testing::expect_same_bits(testing::train(settings, problem, 8, averages),
                            testing::train(settings, problem, 8));
}

TEST(RoundedExchange, ShowsWhatTheOthersSent) {
  const auto problem = testing::perceptron();
  testing::run_workers(2, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    Settings settings{.workers = 2, .topology = make_topology("ring", 2, 1)};
    settings.exchange = "bf16";
    DecentralizedOptions options = settings.options();
    int calls = 0;
    options.pre_average = [&](const PreAverage& now) {
      ++calls;
      // (q(x_j) - q(x_i)) + q(x_i) in float64: exact.
      EXPECT_TRUE(at::equal(now.received.to(at::kBFloat16).to(at::kDouble), now.received));
      EXPECT_FALSE(at::equal(now.received, now.local));
    };
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 3; ++t) problem.loss(x, world->rank(), t).backward();
    parallel.global_avg(false);
    EXPECT_EQ(calls, 2);
    return 0;
  });
}

// What one worker gains the others lose: after 10,000 mixes the average has moved by the rounding
// of float32 alone, 2^-24 of an element each time at most, in whatever direction: some 100 times
// that after 10,000. Mixed as w x_i + (1 - w) q(x_j), it moves by 2^-9 in a few steps.
TEST(RoundedExchange, KeepsTheAverageOver10000Mixes) {
  constexpr int kWorkers = 4;
  constexpr std::int64_t kMixes = 10000;
  const auto phases = std::vector<Phase>{{{{0, 1}, 0.5}, {{2, 3}, 0.5}},
                                         {{{0, 3}, 0.5}, {{1, 2}, 0.5}},
                                         {{{0, 1, 2}, 0.3}, {{3}, 1.0}}};
  at::manual_seed(4);
  const at::Tensor start = at::randn({kWorkers, 64});
  const auto ends = testing::run_workers(kWorkers, [&](const testing::Worker& world) {
    const at::Tensor x = start[world->rank()].clone();
    const auto exchange =
        ExchangeChoice("bf16").make({.communicator = world, .phases = phases, .buckets = {x}});
    for (std::int64_t t = 1; t <= kMixes; ++t) {
      exchange->start(0, t);
      mix(x.data_ptr(), x.numel(), Scalar::float32, exchange->wait(0));
    }
    return x;
  });
  at::Tensor average = at::zeros({64}, at::kDouble);
  for (const at::Tensor& x : ends) average += x.to(at::kDouble) / kWorkers;
  const at::Tensor before = start.to(at::kDouble).mean(0);
  const double size = start.abs().max().item<double>();
  EXPECT_LE((average - before).abs().max().item<double>(), 100 * 0x1p-24 * size);
  // Agreement is as close as bfloat16 can tell weights apart.
  for (const at::Tensor& x : ends)
    EXPECT_LE((x - ends[0]).abs().max().item<double>(), 2 * 0x1p-8 * size);
}

}  // namespace
}  // namespace decent
