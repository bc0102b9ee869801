#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::Settings;

Settings alone() { return {.topology = make_topology("ring", 1, 1)}; }

struct Parts {
  NamedTensors parameters, buffers;
};

// Different on every worker: trained, frozen, and buffers of all kinds, in memory orders of all
// kinds.
Parts parts_of(int rank) {
  const double seed = 10 * rank;
  return {{{"w", testing::parameter({3, 2}, seed)},
           {"frozen", testing::scattered({4}, seed + 1)},
           {"float", testing::scattered({2, 5}, seed + 2).to(at::kFloat).t().requires_grad_()},
           {"frozen half", testing::scattered({3}, seed + 3).to(at::kHalf)}},
          {{"mean", testing::scattered({3, 2}, seed + 4).t()},
           {"count", at::full({}, rank, at::kLong)},
           {"mask", at::full({5}, rank == 0, at::kBool)},
           {"empty", at::full({0}, 0.0)}}};
}

TEST(Start, GivesRankZerosTensorsToEveryone) {
  const auto all = testing::run_workers(3, [](const testing::Worker& world) {
    Parts parts = parts_of(world->rank());
    Settings settings{.topology = make_topology("complete", 3, 1)};
    DecentralizedParameters parallel(parts.parameters, parts.buffers, world, settings.options());
    return parts;
  });
  const Parts expected = parts_of(0);
  for (const Parts& parts : all) {
    for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
      const auto& [name, tensor] = expected.parameters[i];
      EXPECT_TRUE(at::equal(parts.parameters[i].second, tensor)) << name;
      EXPECT_EQ(parts.parameters[i].second.strides(), tensor.strides()) << name;
    }
    for (std::size_t i = 0; i < expected.buffers.size(); ++i) {
      EXPECT_TRUE(at::equal(parts.buffers[i].second, expected.buffers[i].second))
          << expected.buffers[i].first;
    }
  }
}

TEST(Start, TellsWhatIsTrained) {
  const Parts parts = parts_of(0);
  Settings settings = alone();
  DecentralizedParameters parallel(parts.parameters, parts.buffers, make_single_worker(),
                                   settings.options());
  EXPECT_EQ(parallel.parameter_count(), 16);
  EXPECT_EQ(parallel.bucket_count(), 2U);  // float64 and float32
  EXPECT_EQ(parallel.step(), 0);
  EXPECT_EQ(parallel.get_lr(), Settings::lr(1));
}

TEST(Start, FrozenParametersStay) {
  const Parts parts = parts_of(0);
  Settings settings = alone();
  DecentralizedParameters parallel(parts.parameters, parts.buffers, make_single_worker(),
                                   settings.options());
  for (int t = 1; t <= 3; ++t) {
    const auto& p = parts.parameters;
    (p[0].second.sum() * p[1].second.sum() + p[2].second.square().sum()).backward();
    EXPECT_EQ(parallel.get_lr(), Settings::lr(t + 1));
  }
  EXPECT_TRUE(at::equal(parts.parameters[1].second, parts_of(0).parameters[1].second));
  EXPECT_FALSE(at::equal(parts.parameters[0].second, parts_of(0).parameters[0].second));
}

template <typename Change>
std::string refusal(const Change& change, NamedTensors parameters = parts_of(0).parameters) {
  Settings settings = alone();
  DecentralizedOptions options = settings.options();
  change(options);
  try {
    DecentralizedParameters parallel(parameters, {}, make_single_worker(), options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Start, RefusesWhatCannotBeTrained) {
  const auto nothing = [](DecentralizedOptions&) {};
  EXPECT_EQ(refusal(nothing), "accepted");
  EXPECT_THAT(refusal(nothing, {{"frozen", testing::scattered({4}, 1)}}),
              HasSubstr("none requires a gradient"));
  EXPECT_THAT(refusal(nothing, {}), HasSubstr("no parameter to train"));
  const at::Tensor shared = testing::scattered({4}, 1);
  EXPECT_THAT(refusal(nothing, {{"a", shared.detach().requires_grad_()}, {"b", shared.detach()}}),
              HasSubstr("share memory"));
  EXPECT_THAT(refusal([](DecentralizedOptions& o) { o.topology = make_topology("ring", 2, 1); }),
              HasSubstr("rank 1"));
}

TEST(Start, RefusesOptionsThatAreMissingOrOutOfRange) {
  EXPECT_THAT(refusal([](DecentralizedOptions& o) { o.training.update = nullptr; }),
              HasSubstr("options.training.update is not set"));
  EXPECT_THAT(refusal([](DecentralizedOptions& o) { o.training.schedule = nullptr; }),
              HasSubstr("options.training.schedule is not set"));
  for (const double size : {0.0, -1.0, std::nan("")}) {
    EXPECT_THAT(refusal([&](DecentralizedOptions& o) { o.training.bucket_mb = size; }),
                HasSubstr("greater than 0"));
  }
  for (const double norm : {-1.0, std::nan("")}) {
    EXPECT_THAT(refusal([&](DecentralizedOptions& o) { o.training.clip.norm = norm; }),
                HasSubstr("options.training.clip.norm"));
  }
  EXPECT_THAT(refusal([](DecentralizedOptions& o) { o.training.weight_decay = -0.1; }),
              HasSubstr("options.training.weight_decay"));
  EXPECT_THAT(refusal([](DecentralizedOptions& o) { o.local_world_size = -1; }),
              HasSubstr("local_world_size is -1"));
  EXPECT_THAT(refusal([](DecentralizedOptions& o) { o.topology = "chain"; }),
              HasSubstr("topology 'chain'"));
  EXPECT_THROW(DecentralizedParameters(parts_of(0).parameters, {}, nullptr, alone().options()),
               UserError);
}

TEST(Start, RefusesGammaOutOfRange) {
  for (const double gamma : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THAT(refusal([&](DecentralizedOptions& o) { o.gamma = gamma; }), HasSubstr("[0, 1]"));
  }
}

TEST(AdaptiveFactor, MustBeBetweenZeroAndOne) {
  const Parts parts = parts_of(0);
  Settings settings = alone();
  DecentralizedParameters parallel(parts.parameters, {}, make_single_worker(), settings.options());
  for (const double gamma : {-1e-9, 1.0000001, HUGE_VAL, std::nan("")}) {
    EXPECT_THROW(parallel.set_adaptive_factor(gamma), UserError) << gamma;
  }
  for (const double gamma : {0.0, 0.3, 1.0}) EXPECT_NO_THROW(parallel.set_adaptive_factor(gamma));
}

TEST(AdaptiveFactor, CountsFromTheNextMixing) {
  const testing::Problem problem = testing::perceptron();
  Settings settings{
      .workers = 2, .topology = make_topology("ring", 2, 1), .gamma = 1, .bucket_mb = 3e-4};
  const auto changed = testing::train(settings, problem, 6, [](const testing::Session& session) {
    session.parallel.set_adaptive_factor(0.25);
  });
  settings.gamma = 0.25;  // nothing is mixed in step 1, after which it changed
  testing::expect_same_bits(changed, testing::train(settings, problem, 6));
}

TEST(WaitSeconds, AddUpUntilTaken) {
  const testing::Problem problem = testing::perceptron();
  const Settings settings{.workers = 2, .topology = make_topology("ring", 2, 1)};
  testing::train(settings, problem, 3, [](const testing::Session& session) {
    const double waited = session.parallel.take_wait_seconds();
    EXPECT_GE(waited, 0);
    EXPECT_LT(waited, 20);  // the timeout of the tests
    EXPECT_EQ(session.parallel.take_wait_seconds(), 0);
  });
}

}  // namespace
}  // namespace decent
