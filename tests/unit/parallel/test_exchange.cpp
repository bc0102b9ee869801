// Each method of exchanging weights by itself: what comes of it, what it does when asked to settle
// or drop, and who takes part.

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <thread>

#include "../support/idle_communicator.h"
#include "../support/workers.h"
#include "decent/comm/lost_workers.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/schedule.h"
#include "decent/parallel/exchange/methods.h"
#include "problem.h"

namespace decent {
namespace {

constexpr double kGamma = 0.6;

// Pairs, a worker alone, and edges of 3 and 5, with weights of all kinds.
const std::vector<Phase> kPhases = {{{{0, 3}, 0.7}, {{1}, 1.0}, {{2, 4}, 0.5}},
                                    {{{0, 1, 2}, 0.3}, {{3, 4}, 0.2}},
                                    {{{0, 1, 2, 3, 4}, 0.4}}};
constexpr int kFive = 5;

// Integers: the same in bfloat16, so that both methods have one answer.
at::Tensor weights_of(int rank) {
  return at::tensor({1.0, 2.0, 3.0}, at::kDouble).mul(rank + 1).add(rank * rank);
}

void mix_into(const at::Tensor& x, const Mixing& mixing) {
  mix(x.data_ptr(), x.numel(), Scalar::float64, mixing);
}

// What mixing makes of the bucket `x`, which keeps its values.
at::Tensor after_mixing(const at::Tensor& x, const Mixing& mixing) {
  const at::Tensor before = x.clone();
  mix_into(x, mixing);
  at::Tensor z = x.clone();
  x.copy_(before);
  return z;
}

// z_i = (1 - gamma) x_i + gamma sum_j W_ij x_j, of the workers' own weights.
at::Tensor mixed(const Phase& phase, int rank) {
  const Edge& edge = edge_of(phase, rank);
  at::Tensor z = weights_of(rank) * (1 - kGamma + kGamma * edge.self_weight);
  for (const int other : edge.ranks) {
    if (other == rank) continue;
    z += weights_of(other) * (kGamma * (1 - edge.self_weight) / (std::ssize(edge.ranks) - 1));
  }
  return z;
}

std::unique_ptr<Exchange> make(const std::string& method, const testing::Worker& world,
                               const at::Tensor& x) {
  auto exchange = exchange_method(method).make({.communicator = world,
                                                .phases = kPhases,
                                                .buckets = {x, x.clone()},
                                                .schedule = constant_lr(0.01)});
  exchange->set_gamma(kGamma);
  return exchange;
}

// Some five roundings of float64 of values of up to 40.
void expect_near(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_LE((actual - expected).abs().max().item<double>(), 1e-13);
}

class EachMethod : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, EachMethod, ::testing::Values("fp32", "bf16"),
                         [](const auto& method) { return method.param; });

// Worker 1 is lost. Worker 0 knows it when it sends; worker 2 still waits for the messages of both.
TEST(Exchange, WorkersBehindALostOneGetTheirMessage) {
  for (const std::string method : {"bf16", "modulo2"}) {
    std::latch done(2);
    const auto exchanges = [&](const testing::Worker& world) {
      const auto lost = std::make_shared<LostWorkers>();
      world->go_on_without(lost);
      const at::Tensor x = weights_of(world->rank());
      const auto exchange = exchange_method(method).make({.communicator = world,
                                                          .phases = {{{{0, 1, 2}, 0.3}}},
                                                          .buckets = {x},
                                                          .schedule = constant_lr(0.01)});
      if (world->rank() == 1) {
        done.wait();
        return testing::Nothing();
      }
      if (world->rank() == 0) lost->add(1);
      exchange->start(0, 1);
      std::thread news([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        lost->add(1);
      });
      EXPECT_TRUE(at::equal(after_mixing(x, exchange->wait(0)), x)) << method;
      news.join();
      done.count_down();
      return testing::Nothing();
    };
    EXPECT_THROW(testing::run_workers(3, exchanges), PeerLost);  // when they all meet at the end
  }
}

TEST_P(EachMethod, MixesByThePhaseOfItsStep) {
  testing::run_workers(kFive, [](const testing::Worker& world) {
    const at::Tensor x = weights_of(world->rank());
    const auto exchange = make(GetParam(), world, x);
    for (const std::int64_t step : {1, 2, 3, 4, 7, 12}) {
      exchange->start(0, step);
      const Mixing mixing = exchange->wait(0);
      const Phase& phase = kPhases[static_cast<std::size_t>((step - 1) % 3)];
      const bool alone = edge_of(phase, world->rank()).ranks.size() == 1;
      EXPECT_EQ(mixing.mixes(), !alone);
      expect_near(after_mixing(x, mixing), mixed(phase, world->rank()));
    }
    return testing::Nothing();
  });
}

TEST_P(EachMethod, ShowsTheMeanOfTheOthers) {
  testing::run_workers(kFive, [](const testing::Worker& world) {
    const auto exchange = make(GetParam(), world, weights_of(world->rank()));
    EXPECT_FALSE(exchange->peek(0));
    for (std::int64_t step = 1; step <= 3; ++step) {
      const Edge& edge = edge_of(kPhases[static_cast<std::size_t>(step - 1)], world->rank());
      exchange->start(0, step);
      const auto received = exchange->peek(0);
      EXPECT_EQ(received.has_value(), edge.ranks.size() > 1);
      if (received) {
        at::Tensor others = -weights_of(world->rank());
        for (const int rank : edge.ranks) others += weights_of(rank);
        EXPECT_EQ(*received->edge, edge);
        expect_near(received->others, others / (std::ssize(edge.ranks) - 1));
      }
      exchange->wait(0);
    }
    return testing::Nothing();
  });
}

TEST_P(EachMethod, KeepsWhatCameWhenItSettlesAndForgetsItWhenItDrops) {
  testing::run_workers(kFive, [](const testing::Worker& world) {
    const at::Tensor x = weights_of(world->rank());
    const auto exchange = make(GetParam(), world, x);
    exchange->start(0, 3);
    exchange->start(1, 3);
    exchange->settle();
    mix_into(x, exchange->wait(0));
    expect_near(x, mixed(kPhases[2], world->rank()));
    exchange->drop();
    EXPECT_FALSE(exchange->wait(1).mixes());
    EXPECT_FALSE(exchange->wait(0).mixes());
    return testing::Nothing();
  });
}

TEST_P(EachMethod, SaysWhatItCosts) {
  const auto costs = exchange_method(GetParam()).costs;
  EXPECT_EQ(costs(1).sent, 0);
  EXPECT_EQ(costs(1).memory, 0);
  const bool half = GetParam() == "bf16";
  EXPECT_EQ(costs(2).sent, half ? 0.5 : 1);
  EXPECT_EQ(costs(8).sent, 1.75);  // a ring all-reduce's, 2 (n - 1) / n
  EXPECT_EQ(costs(2).memory, half ? 2 : 1);
  EXPECT_EQ(costs(8).memory, half ? 2.5 : 1);
}

// Workers 0, 2 and 3 of 4, which are 0, 1 and 2 of their group.
TEST_P(EachMethod, WorksForAPartOfTheWorkers) {
  const std::vector<Phase> phases = {
      {{{0, 2}, 0.5}, {{1}, 1.0}}, {{{0}, 1.0}, {{1, 2}, 0.5}}, {{{0, 1, 2}, 0.4}}};
  testing::run_workers(4, [&](const testing::Worker& all) {
    if (all->rank() == 1) return testing::Nothing();
    const std::shared_ptr<Communicator> group = all->subgroup({0, 2, 3});
    const at::Tensor x = weights_of(group->rank());
    const auto exchange =
        exchange_method(GetParam()).make({.communicator = group, .phases = phases, .buckets = {x}});
    exchange->set_gamma(kGamma);
    for (std::int64_t step = 1; step <= 6; ++step) {
      const Phase& phase = phases[static_cast<std::size_t>((step - 1) % 3)];
      exchange->start(0, step);
      if (const auto received = exchange->peek(0)) {
        EXPECT_EQ(*received->edge, edge_of(phase, group->rank()));
      }
      expect_near(after_mixing(x, exchange->wait(0)), mixed(phase, group->rank()));
    }
    return testing::Nothing();
  });
}

// Notes with whom it was to connect; the exchanges themselves are not made.
class Connected : public testing::IdleCommunicator {
 public:
  using IdleCommunicator::IdleCommunicator;
  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    return std::make_shared<Connected>(0, static_cast<int>(members.size()));
  }
  void connect_pairs(const std::vector<int>& peers) override { calls.push_back(peers); }

  std::vector<std::vector<int>> calls;
};

// Before the first step, in one call, and both ends of a pair.
TEST(ExchangeMethods, ConnectThePairsThatTheyExchangeWith) {
  const auto pairs_of = [](const std::string& method, int rank) {
    const auto world = std::make_shared<Connected>(rank, kFive);
    make(method, world, at::zeros({3}));
    EXPECT_EQ(world->calls.size(), 1U);
    return world->calls.at(0);
  };
  using ::testing::ElementsAre;
  // Edges of two; larger ones all-reduce.
  EXPECT_THAT(pairs_of("fp32", 0), ElementsAre(3));
  EXPECT_THAT(pairs_of("fp32", 3), ElementsAre(0, 4));
  EXPECT_THAT(pairs_of("fp32", 1), ElementsAre());
  // Up to four.
  EXPECT_THAT(pairs_of("bf16", 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(pairs_of("bf16", 4), ElementsAre(2, 3));
  EXPECT_THAT(pairs_of("modulo2", 0), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace decent
