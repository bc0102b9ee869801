// One method for edges inside a machine and another one for those between machines.

#include "decent/parallel/exchange/by_machine.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/idle_communicator.h"
#include "decent/optim/bucket_update.h"
#include "training.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kStrength = 0.6;

// Edges of one to five with weights of all kinds. Those of the first phase decide the range of
// modulo codes, whichever exchange they belong to.
const std::vector<Phase> kOfAllSizes = {{{{0, 3}, 0.7}, {{1}, 1.0}, {{2, 4}, 0.5}},
                                        {{{0, 1, 2}, 0.3}, {{3, 4}, 0.2}},
                                        {{{0, 1, 2, 3, 4}, 0.4}}};
constexpr int kFiveWorkers = 5;
const std::vector<int> kFirstPhaseWithin = {0, 1, 2, 0, 2};
const std::vector<int> kSecondPhaseWithin = {0, 0, 0, 3, 3};

// Copies that are near one another, as those of modulo codes have to be.
at::Tensor near_weights(int rank) {
  return testing::scattered({150}, 1).add_(testing::scattered({150}, 2 + rank), 0.01);
}

std::unique_ptr<Exchange> made_by(const ExchangeChoice& choice, const testing::Worker& world,
                                  const at::Tensor& x) {
  auto exchange = choice.make({.communicator = world,
                               .phases = kOfAllSizes,
                               .buckets = {x},
                               .schedule = constant_lr(0.01)});
  exchange->set_gamma(kStrength);
  return exchange;
}

// What one exchange after `step` makes of the bucket `x`, which keeps its values.
at::Tensor mixed_by(Exchange& exchange, const at::Tensor& x, std::int64_t step) {
  exchange.start(0, step);
  at::Tensor z = x.clone();
  const Mixing mixing = exchange.wait(0);
  const at::Tensor before = x.clone();
  mix(x.data_ptr(), x.numel(), Scalar::float64, mixing);
  z.copy_(x);
  x.copy_(before);
  return z;
}

// Of two phases in turn, with slices, in one pass of the update.
testing::Models train_with(const ExchangeChoice& exchange) {
  const testing::Problem problem = testing::perceptron();
  return testing::run_workers(3, [&](const testing::Worker& world) {
    DecentralizedOptions options = testing::of_three().options();
    options.exchange = exchange;
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 11; ++t) problem.loss(x, world->rank(), t).backward();
    std::vector<at::Tensor> result = testing::copies(x);
    parallel.global_avg(false);
    return result;
  });
}

class EachMethodTwice : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, EachMethodTwice,
                         ::testing::Values("fp32", "bf16", "modulo2", "modulo4"),
                         [](const auto& method) { return method.param; });

TEST_P(EachMethodTwice, GivesTheBitsOfThatMethodAlone) {
  const ExchangeChoice alone = GetParam();
  const ExchangeOptions two_slices{.slices = 2};
  const testing::Models expected = train_with({GetParam(), two_slices});
  testing::expect_same_bits(train_with(by_machine(alone, alone, {0, 1, 0}, two_slices)), expected,
                            "pair within");
  testing::expect_same_bits(train_with(by_machine(alone, alone, {0, 0, 0}, two_slices)), expected,
                            "one machine");
  testing::expect_same_bits(train_with(by_machine(alone, alone, {0, 1, 2}, two_slices)), expected,
                            "three machines");
}

struct TwoMethods {
  std::string between, within;
};

class EachPair : public ::testing::TestWithParam<TwoMethods> {};
INSTANTIATE_TEST_SUITE_P(
    Methods, EachPair,
    ::testing::Values(TwoMethods{"modulo2", "fp32"}, TwoMethods{"modulo4", "bf16"},
                      TwoMethods{"bf16", "fp32"}, TwoMethods{"fp32", "modulo2"},
                      TwoMethods{"modulo2", "modulo4"}),
    [](const auto& two) { return two.param.between + "_and_" + two.param.within; });

void expect_as_alone(const testing::Worker& world, const TwoMethods& two,
                     const std::vector<int>& machines) {
  const at::Tensor x = near_weights(world->rank());
  const auto both = made_by(by_machine(two.between, two.within, machines), world, x);
  const auto between = made_by(two.between, world, x);
  const auto within = made_by(two.within, world, x);
  for (std::int64_t step = 1; step <= 9; ++step) {
    const Phase& phase = kOfAllSizes[static_cast<std::size_t>((step - 1) % 3)];
    const Edge& edge = edge_of(phase, world->rank());
    Exchange& alone = within_machine(edge, machines) ? *within : *between;
    EXPECT_TRUE(at::equal(mixed_by(*both, x, step), mixed_by(alone, x, step))) << step;
    if (edge.ranks.size() > 1) {
      EXPECT_EQ(both->wrap_share(), alone.wrap_share()) << step;
    }
    both->start(0, step);
    const auto received = both->peek(0);
    both->drop();
    alone.start(0, step);
    const auto expected = alone.peek(0);
    alone.drop();
    ASSERT_EQ(received.has_value(), expected.has_value());
    if (!expected) continue;
    EXPECT_EQ(*received->edge, edge);
    EXPECT_TRUE(at::equal(received->others, expected->others)) << step;
  }
}

TEST_P(EachPair, MixesInEachEdgeAsItsMethodAlone) {
  testing::run_workers(kFiveWorkers, [](const testing::Worker& world) {
    expect_as_alone(world, GetParam(), kFirstPhaseWithin);
    expect_as_alone(world, GetParam(), kSecondPhaseWithin);
    return testing::Nothing();
  });
}

// With R = 8 and a rate of 0.01 places are 2 * 8 * 0.01 / 16 apart, rounded up to a power of two.
constexpr double kGrid = 0x1p-6;

// z_i = x_i + gamma sum_j W_ij (x_j - x_i) in both kinds of edges: inside of what x is, and between
// machines of codes, which tell weights on the grid exactly. Some five roundings of float64 of
// values of up to 3.
TEST(ExchangeByMachine, IsTheMeanOfWeightsInsideAndOfPlacesOnTheGridBetween) {
  testing::run_workers(kFiveWorkers, [](const testing::Worker& world) {
    const auto value_of = [](int rank, bool on_grid) {
      return on_grid ? 1 + rank * kGrid : 2 + 0.1 * rank;
    };
    const at::Tensor x = at::zeros({70}, at::kDouble);
    const auto exchange =
        by_machine("modulo4", "fp32", kSecondPhaseWithin, {.own = {{"modulo_range", 8}}})
            .make({.communicator = world,
                   .phases = kOfAllSizes,
                   .buckets = {x},
                   .schedule = constant_lr(0.01)});
    exchange->set_gamma(kStrength);
    for (std::int64_t step = 1; step <= 6; ++step) {
      const Phase& phase = kOfAllSizes[static_cast<std::size_t>((step - 1) % 3)];
      const Edge& edge = edge_of(phase, world->rank());
      const bool on_grid = !within_machine(edge, kSecondPhaseWithin);
      const double own = value_of(world->rank(), on_grid);
      double expected = own;
      for (const int other : edge.ranks) {
        if (other == world->rank()) continue;
        const double weight = (1 - edge.self_weight) / static_cast<double>(edge.ranks.size() - 1);
        expected += kStrength * weight * (value_of(other, on_grid) - own);
      }
      x.fill_(own);
      const at::Tensor error = mixed_by(*exchange, x, step) - expected;
      EXPECT_LE(error.abs().max().item<double>(), 1e-14) << step;
    }
    return testing::Nothing();
  });
}

TEST(ExchangeByMachine, KeepsWhatCameWhenItSettlesAndForgetsItWhenItDrops) {
  testing::run_workers(kFiveWorkers, [](const testing::Worker& world) {
    const at::Tensor x = near_weights(world->rank());
    const auto exchange = made_by(by_machine("modulo2", "fp32", kSecondPhaseWithin), world, x);
    for (const std::int64_t step : {2, 3}) {
      exchange->start(0, step);
      exchange->settle();
      EXPECT_TRUE(exchange->wait(0).mixes());
      exchange->start(0, step);
      exchange->drop();
      EXPECT_FALSE(exchange->wait(0).mixes());
    }
    return testing::Nothing();
  });
}

// Remembers two numbers.
class Remembering : public Exchange {
 public:
  explicit Remembering(double first)
      : first_(at::full({1}, first)), second_(at::full({1}, first + 1)) {}
  void start(std::size_t, std::int64_t) override {}
  Mixing wait(std::size_t) override { return {}; }
  std::optional<Received> peek(std::size_t) override { return std::nullopt; }
  void settle() override {}
  void drop() override {}
  NamedTensors state() const override { return {{"within.first", first_}, {"second", second_}}; }
  void restore(const NamedTensors& state) override {
    ASSERT_EQ(state.size(), 2U);
    EXPECT_EQ(state[0].first, "within.first");
    EXPECT_EQ(state[1].first, "second");
    EXPECT_TRUE(state[0].second.is_same(first_));
    EXPECT_TRUE(state[1].second.is_same(second_));
    ++restored;
  }

  static inline int restored = 0;

 private:
  at::Tensor first_, second_;
};

// A method's own names may begin with the prefix, too.
TEST(ExchangeByMachine, GivesEachMethodItsStateBack) {
  const auto remembering = [](double first) {
    return [first](const ExchangeSetup&) { return std::make_unique<Remembering>(first); };
  };
  const auto exchange =
      by_machine(remembering(1), remembering(10), {0})
          .make({.communicator = make_single_worker(), .phases = {{{{0}, 1.0}}}, .buckets = {}});
  const NamedTensors state = exchange->state();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("within.first", "second", "within.within.first", "within.second"));
  Remembering::restored = 0;
  exchange->restore(state);
  EXPECT_EQ(Remembering::restored, 2);
}

// Notes with whom it was to connect.
class Connects : public testing::IdleCommunicator {
 public:
  using IdleCommunicator::IdleCommunicator;
  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    groups.push_back(members);
    return std::make_shared<Connects>(0, static_cast<int>(members.size()));
  }
  void connect_pairs(const std::vector<int>& peers) override { pairs.push_back(peers); }

  std::vector<std::vector<int>> groups, pairs;
};

TEST(ExchangeByMachine, ConnectsEachMethodForItsOwnEdges) {
  const auto world = std::make_shared<Connects>(0, kFiveWorkers);
  const at::Tensor x = at::zeros({3});
  made_by(by_machine("modulo2", "fp32", kSecondPhaseWithin), world, x);
  // Modulo codes go to each other member, sums of float32 through a group.
  EXPECT_THAT(world->pairs, ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre()));
  EXPECT_THAT(world->groups, ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(ExchangeByMachine, NeedsNearCopiesIfOneOfThemDoes) {
  EXPECT_TRUE(by_machine("modulo2", "fp32", {0}).needs_near_copies());
  EXPECT_TRUE(by_machine("fp32", "modulo2", {0}).needs_near_copies());
  EXPECT_FALSE(by_machine("fp32", "bf16", {0}).needs_near_copies());
}

TEST(ExchangeByMachine, PassesOwnOptionsOnAndChecksThem) {
  const auto world = std::make_shared<Connects>(0, 1);
  Options seen;
  const auto own = [&](const ExchangeSetup& setup) {
    seen = setup.options.own;
    return exchange_method("fp32").make(setup);
  };
  const ExchangeMethod unregistered{
      .name = "mine",
      .make = own,
      .keys = {
          {.name = "share", .type = OptionType::number, .fallback = 0.5, .range = at_least(0)}}};
  const auto make = [&](const ExchangeChoice& within, const Options& options) {
    by_machine("fp32", within, {0}, {.own = options})
        .make({.communicator = world, .phases = {{{{0}, 1.0}}}, .buckets = {at::zeros({3})}});
  };
  make(ExchangeChoice(unregistered), {{"share", 0.25}});
  EXPECT_EQ(seen.get<double>("share"), 0.25);
  EXPECT_THAT(
      [&] {
        make(ExchangeChoice(unregistered), {{"share", -1}});
      },
      ThrowsMessage<UserError>(HasSubstr("share is -1: it must be >= 0")));
  EXPECT_THAT(
      [&] {
        make(ExchangeChoice(unregistered), {{"shares", 1}});
      },
      ThrowsMessage<UserError>(HasSubstr("no exchange has an option 'shares'")));
  make(own, {{"anything", true}});  // a function checks its own options
  EXPECT_TRUE(seen.get<bool>("anything"));
}

TEST(RegisterExchange, RefusesOptionsWithoutADefault) {
  EXPECT_THAT(
      [] {
        register_exchange({.name = "needy",
                           .make = exchange_method("fp32").make,
                           .keys = {{.name = "share", .type = OptionType::number}}});
      },
      ThrowsMessage<UserError>(HasSubstr("the option 'share' needs a default")));
}

TEST(ModuloOptionsInside, OfAUsersFunctionAreChecked) {
  const auto world = std::make_shared<Connects>(0, 1);
  const ExchangeChoice choice(
      [](const ExchangeSetup& setup) { return exchange_method("modulo4").make(setup); },
      {.own = {{"modulo_range", -1}}});
  EXPECT_THAT(
      [&] {
        choice.make({.communicator = world,
                     .phases = {{{{0}, 1.0}}},
                     .buckets = {at::zeros({3})},
                     .schedule = constant_lr(1)});
      },
      ThrowsMessage<UserError>(HasSubstr("modulo_range is -1: it must be > 0")));
}

TEST(ExchangeByMachine, RefusesMachinesOfOtherWorkers) {
  const auto world = std::make_shared<Connects>(0, kFiveWorkers);
  EXPECT_THAT(
      [&] {
        made_by(by_machine("fp32", "bf16", {0, 0}), world, at::zeros({3}));
      },
      ThrowsMessage<UserError>(HasSubstr("machines has 2 entries for 5 workers")));
}

TEST(WithinMachine, IsAnEdgeWithAllMembersThere) {
  const std::vector<int> machines = {0, 0, 2, 2};
  EXPECT_TRUE(within_machine({{0, 1}, 0.5}, machines));
  EXPECT_TRUE(within_machine({{3}, 1.0}, machines));
  EXPECT_FALSE(within_machine({{1, 2}, 0.5}, machines));
  EXPECT_FALSE(within_machine({{0, 1, 2}, 0.5}, machines));
}

}  // namespace
}  // namespace decent
