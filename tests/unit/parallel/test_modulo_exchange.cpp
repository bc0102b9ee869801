// Training with the modulo exchanges: codes that the update makes in its own pass, evaluations,
// resuming, both classes. What is sent and mixed is compared with a reference in tests/parity.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mutex>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/decent_optim_wrapper.h"
#include "training.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::Settings;
using ::testing::ThrowsMessage;

constexpr std::int64_t kSteps = 23;  // rounds of 3 slices and 2 phases, parts of 8 bits among them

// Each worker is drawn to goals of its own, which change with each step or stay.
testing::Problem pulled_apart(bool for_ever = false) {
  return {.shapes = {{40, 9}, {150}, {33, 5}},
          .loss = [=](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
            at::Tensor loss = at::tensor(0.0, at::kDouble);
            for (std::size_t i = 0; i < x.size(); ++i) {
              const auto turn = static_cast<double>(for_ever ? 0 : 10 * t);
              const double seed = rank + turn + 0.3 * static_cast<double>(i);
              loss = loss + (x[i] - testing::scattered(x[i].sizes(), seed)).square().sum();
            }
            return loss;
          }};
}

Settings settings(const std::string& method) {
  return {.workers = 3,
          .topology = testing::kUnevenPhases,
          .gamma = 0.7,
          .bucket_mb = 2e-3,
          .exchange = method};
}

DecentralizedOptions options(const std::string& method) {
  DecentralizedOptions result = settings(method).options();
  result.exchange.options.slices = 3;
  return result;
}

using Between = std::function<void(DecentralizedParameters&, std::int64_t t)>;

testing::Models train(
    const DecentralizedOptions& options,
    const Between& between = [](DecentralizedParameters&, std::int64_t) {},
    const testing::Problem& problem = pulled_apart()) {
  return testing::run_workers(3, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= kSteps; ++t) {
      problem.loss(x, world->rank(), t).backward();
      between(parallel, t);
    }
    std::vector<at::Tensor> result = testing::copies(x);
    parallel.global_avg(false);
    return result;
  });
}

class Modulo : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, Modulo, ::testing::Values("modulo2", "modulo4"),
                         [](const auto& method) { return method.param; });

// An update of a user's own that mixes in a pass of its own and leaves the codes to the exchange.
class InTwoPasses : public BucketUpdate {
 public:
  explicit InTwoPasses(std::shared_ptr<const BucketUpdate> update) : update_(std::move(update)) {}
  const std::vector<std::string>& state_names() const override { return update_->state_names(); }
  bool steps_bounded_by_lr() const override { return true; }
  void apply(const BucketStep& step) const override {
    mix(step.x, step.numel, step.scalar, step.mixing, step.kernels);
    BucketStep rest = step;
    rest.mixing = {};
    rest.written = nullptr;
    update_->apply(rest);
  }

 private:
  std::shared_ptr<const BucketUpdate> update_;
};

TEST_P(Modulo, InOnePassGivesTheBitsOfSeparatePasses) {
  DecentralizedOptions separate = options(GetParam());
  separate.training.update = std::make_shared<InTwoPasses>(separate.training.update);
  testing::expect_same_bits(train(options(GetParam())), train(separate));
}

TEST_P(Modulo, BringsCopiesTogether) {
  DecentralizedOptions alone = options(GetParam());
  alone.gamma = 0;
  const auto distance = [](const DecentralizedOptions& options) {
    const auto nothing = [](DecentralizedParameters&, std::int64_t) {};
    const testing::Models models = train(options, nothing, pulled_apart(/*for_ever=*/true));
    return (models[0][0] - models[1][0]).norm().item<double>();
  };
  EXPECT_LT(distance(options(GetParam())), 0.5 * distance(alone));
}

TEST_P(Modulo, IsLeftAsItWasByEvaluations) {
  const auto evaluate = [](DecentralizedParameters& parallel, std::int64_t t) {
    if (t % 4 != 0) return;
    parallel.global_avg(true);
    parallel.revert_global_avg();
  };
  testing::expect_same_bits(train(options(GetParam()), evaluate), train(options(GetParam())));
}

TEST_P(Modulo, GoesOnFromACheckpointBitForBit) {
  const testing::Models straight = train(options(GetParam()));
  const testing::Problem problem = pulled_apart();
  for (const std::int64_t stop : {1, 7, 20}) {
    const auto resumed = testing::run_workers(3, [&](const testing::Worker& world) {
      NamedTensors saved;
      {
        std::vector<at::Tensor> x = problem.parameters();
        DecentralizedParameters first(testing::named(x), {}, world, options(GetParam()));
        for (std::int64_t t = 1; t <= stop; ++t) problem.loss(x, world->rank(), t).backward();
        for (const auto& [name, tensor] : first.training_state())
          saved.emplace_back(name, tensor.detach().clone());
        first.global_avg(false);
      }
      std::vector<at::Tensor> x = problem.parameters(/*seed=*/5);
      DecentralizedParameters second(testing::named(x), {}, world, options(GetParam()));
      const NamedTensors state = second.training_state();
      for (std::size_t i = 0; i < state.size(); ++i) {
        const at::NoGradGuard no_grad;
        at::Tensor(state[i].second).copy_(saved[i].second);
      }
      second.resume_from(stop, state);
      for (std::int64_t t = stop + 1; t <= kSteps; ++t)
        problem.loss(x, world->rank(), t).backward();
      std::vector<at::Tensor> result = testing::copies(x);
      second.global_avg(false);
      return result;
    });
    testing::expect_same_bits(resumed, straight, "stopped after " + std::to_string(stop));
  }
}

TEST_P(Modulo, SendsNothingAndMixesNothingWithGammaZero) {
  DecentralizedOptions none = options(GetParam());
  none.gamma = 0;
  DecentralizedOptions alone = options("fp32");
  alone.topology = std::vector<Phase>{{{{0}, 1.0}, {{1}, 1.0}, {{2}, 1.0}}};
  testing::expect_same_bits(train(none), train(alone));
}

TEST_P(Modulo, SaysWhichShareOfDifferencesWrapped) {
  // Copies that are pulled apart in every step, and a grid that is much too fine for that.
  DecentralizedOptions too_fine = options(GetParam());
  too_fine.exchange.options.own = {{"modulo_range", 0.1}};
  const auto share_of = [](const DecentralizedOptions& options) {
    std::vector<double> shares;
    std::mutex mutex;
    train(options, [&](DecentralizedParameters& parallel, std::int64_t t) {
      const auto share = parallel.wrap_share();
      EXPECT_FALSE(t == 1 && share);
      const std::lock_guard lock(mutex);
      if (share && t > 10) shares.push_back(*share);
    });
    double sum = 0;
    for (const double share : shares) sum += share;
    return sum / static_cast<double>(shares.size());
  };
  EXPECT_LT(share_of(options(GetParam())), 0.05);
  EXPECT_GT(share_of(too_fine), 0.3);
}

TEST(ModuloOptions, AreRefusedWhereStepsAreNotBounded) {
  for (const char* name : {"sgd", "rmsprop", "radam"}) {
    DecentralizedOptions unbounded = options("modulo2");
    unbounded.training.update = make_update(name);
    EXPECT_THAT([&] { unbounded.check(); },
                ThrowsMessage<UserError>(HasSubstr("steps are bounded by the learning rate")));
  }
  for (const char* name :
       {"adam", "adamw", "lion", "accum_adam", "accum_adamw", "adagrad", "nadam", "nadamw"}) {
    DecentralizedOptions bounded = options("modulo2");
    bounded.training.update = make_update(name);
    EXPECT_NO_THROW(bounded.check()) << name;
  }
}

TEST(ModuloOptions, OutOfRangeAreRefused) {
  DecentralizedOptions none = options("fp32");
  none.exchange.options.slices = 0;
  EXPECT_THAT([&] { none.check(); },
              ThrowsMessage<UserError>(HasSubstr("slices is 0: it must be >= 1")));
  DecentralizedOptions unknown = options("modulo2");
  unknown.exchange.options.own = {{"range", 1}};
  EXPECT_THAT([&] { unknown.check(); },
              ThrowsMessage<UserError>(
                  HasSubstr("no exchange has an option 'range'; valid: modulo_range")));
  DecentralizedOptions text = options("modulo2");
  text.exchange.options.own = {{"modulo_range", "wide"}};
  EXPECT_THAT([&] { text.check(); },
              ThrowsMessage<UserError>(HasSubstr("modulo_range: expected a number, got a text")));
  DecentralizedOptions others = options("fp32");  // an option of another method
  others.exchange.options.own = {{"modulo_range", 8}};
  EXPECT_NO_THROW(others.check());
  DecentralizedOptions zero = options("modulo2");
  zero.exchange.options.own = {{"modulo_range", 0}};
  EXPECT_THAT([&] { zero.check(); },
              ThrowsMessage<UserError>(HasSubstr("modulo_range is 0: it must be > 0")));
}

// ---- DecentOptimWrapper ----

std::shared_ptr<torch::optim::AdamW> adamw(const std::vector<at::Tensor>& x) {
  return std::make_shared<torch::optim::AdamW>(
      x, torch::optim::AdamWOptions(Settings::lr(1)).weight_decay(0.1));
}

testing::Models train_wrapped(const DecentOptimWrapperOptions& options) {
  const testing::Problem problem = pulled_apart();
  return testing::run_workers(3, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    const auto optimizer = adamw(x);
    DecentOptimWrapper wrapper(optimizer, testing::kUnevenPhases, world, options);
    for (std::int64_t t = 1; t <= kSteps; ++t) {
      for (auto& group : optimizer->param_groups()) group.options().set_lr(Settings::lr(t));
      wrapper.zero_grad();
      problem.loss(x, world->rank(), t).backward();
      wrapper.step();
    }
    std::vector<at::Tensor> result = testing::copies(x);
    wrapper.global_avg(false);
    return result;
  });
}

// The same exchange around torch's own AdamW. Its roundings differ, but in float64 by too little
// for a code to change in these steps.
TEST_P(Modulo, IsTheSameAroundAnOptimizerOfTorch) {
  DecentralizedOptions own = options(GetParam());
  own.gamma = 1;
  own.training.settings = [](const std::string&, const at::Tensor&) {
    return ParameterSettings{.weight_decay = 0.1};
  };
  const auto wrapped = train_wrapped(
      {.bucket_cap_mb = 2e-3, .exchange = {GetParam(), {.slices = 3}}, .schedule = Settings::lr});
  testing::expect_near(wrapped, train(own));
}

TEST(ModuloWrapper, NeedsAScheduleAndBoundedSteps) {
  const auto wrap = [](auto optimizer, const DecentOptimWrapperOptions& options) {
    DecentOptimWrapper(optimizer, "ring", make_single_worker(), options);
  };
  const std::vector<at::Tensor> x = {testing::parameter({4}, 0)};
  EXPECT_THAT([&] { wrap(adamw(x), {.exchange = "modulo2"}); },
              ThrowsMessage<UserError>(HasSubstr("needs options.schedule")));
  const DecentOptimWrapperOptions complete{.exchange = "modulo2", .schedule = Settings::lr};
  const auto sgd = std::make_shared<torch::optim::SGD>(x, torch::optim::SGDOptions(0.1));
  EXPECT_THAT([&] { wrap(sgd, complete); },
              ThrowsMessage<UserError>(HasSubstr("Adam or AdamW, not SGD or RMSprop")));
  const auto rmsprop = std::make_shared<torch::optim::RMSprop>(x);
  EXPECT_THAT([&] { wrap(rmsprop, complete); },
              ThrowsMessage<UserError>(HasSubstr("Adam or AdamW, not SGD or RMSprop")));
  EXPECT_NO_THROW(wrap(adamw(x), complete));
}

}  // namespace
}  // namespace decent
