#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "../support/bucket_problem.h"
#include "../support/refusal.h"
#include "decent/core/registry.h"
#include "decent/optim/schedule.h"

namespace decent {
namespace {

using ::testing::AllOf;
using testing::BucketProblem;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::refusal;

TEST(MakeUpdate, MakesEveryNamedOne) {
  EXPECT_THAT(update_names(), IsSupersetOf({"adamw", "adam", "sgd", "accum_adam", "accum_adamw",
                                            "adagrad", "nadam", "nadamw", "radam", "radamw"}));
  for (const std::string& name : update_names())
    EXPECT_FALSE(make_update(name)->state_names().empty());
}

// Whether another value of one option changes the weights after a few updates.
bool changes(const std::string& name, const Options& base, const Options& other) {
  BucketProblem<float> problem({100, 7});
  for (auto* state : {&problem.state0, &problem.state1, &problem.state2})
    std::fill(state->begin(), state->end(), 0.0F);
  BucketProblem<float> second = problem;
  for (std::int64_t updates = 1; updates <= 7; ++updates) {  // radam divides from the sixth on
    for (auto* one : {&problem, &second}) {
      for (BucketSlice& slice : one->slices) slice.updates = updates;
      one->apply(*make_update(name, one == &problem ? base : other), {}, 0.1);
      for (auto& grad : one->grads) std::rotate(grad.begin(), grad.begin() + 1, grad.end());
    }
  }
  return problem.x != second.x;
}

// update_takes() is what recipes and their manual go by.
TEST(MakeUpdate, LooksAtTheOptionsThatItIsSaidToTake) {
  const Options base{{"momentum", 0.5}, {"accum_iter", 2}};
  const std::vector<std::pair<std::string, Options>> others = {
      {"momentum", {{"momentum", 0.25}, {"accum_iter", 2}}},
      {"nesterov", {{"momentum", 0.5}, {"nesterov", true}, {"accum_iter", 2}}},
      {"betas", {{"betas", std::array{0.5, 0.999}}, {"momentum", 0.5}, {"accum_iter", 2}}},
      {"betas", {{"betas", std::array{0.9, 0.5}}, {"momentum", 0.5}, {"accum_iter", 2}}},
      {"eps", {{"momentum", 0.5}, {"eps", 0.1}, {"accum_iter", 2}}},
      {"alpha", {{"momentum", 0.5}, {"accum_iter", 2}, {"alpha", 0.5}}},
      {"lr_decay", {{"momentum", 0.5}, {"accum_iter", 2}, {"lr_decay", 0.5}}},
      {"initial_accumulator_value",
       {{"momentum", 0.5}, {"accum_iter", 2}, {"initial_accumulator_value", 0.5}}},
      {"momentum_decay", {{"momentum", 0.5}, {"accum_iter", 2}, {"momentum_decay", 0.5}}},
      {"accum_iter", {{"momentum", 0.5}, {"accum_iter", 3}}}};
  for (const std::string& name : update_names()) {
    for (const auto& [option, other] : others) {
      const bool of_matrices = name == "muon" && (option == "momentum" || option == "nesterov");
      EXPECT_EQ(changes(name, base, other), update_takes(name, option) && !of_matrices)
          << name << " " << option;
    }
  }
  EXPECT_FALSE(update_takes("sgd", "no option"));
}

// One step of a matrix of 6 rows and 2 columns, whose direction is 1 everywhere.
std::vector<double> stepped_by_muon(const Options& options, MatrixStep& how) {
  std::vector<double> x(12, 2.0), grad(12, 0.5), momentum(12), direction(12);
  void* const states[] = {momentum.data(), direction.data()};
  const std::vector<BucketSlice> slices = {{.numel = 12,
                                            .grad = grad.data(),
                                            .weight_decay = 0.5,
                                            .updates = 1,
                                            .matrix = {.rows = 6, .cols = 2}}};
  BucketStep step;
  step.x = x.data();
  step.numel = 12;
  step.states = states;
  step.scalar = Scalar::float64;
  step.slices = slices;
  step.lr = 0.25;
  step.matrix_work = [&](const BucketStep&, const MatrixStep& given, const MatrixArrays& of) {
    how = given;
    EXPECT_EQ(of.grad, grad.data());
    EXPECT_EQ(of.momentum, momentum.data());
    std::fill_n(static_cast<double*>(of.direction), 12, 1.0);
  };
  make_update("muon", options)->apply(step);
  return x;
}

TEST(MakeUpdate, MuonStepsAlongTheDirectionOfAMatrix) {
  MatrixStep how;
  const double decayed = 2.0 - 0.25 * 0.5 * 2.0;
  // Some roundings of doubles, here and below.
  EXPECT_THAT(stepped_by_muon({{"momentum", 0.5}, {"nesterov", false}, {"ns_steps", 3}}, how),
              Each(DoubleNear(decayed - 0.25 * 0.2 * std::sqrt(6.0), 1e-15)));
  EXPECT_EQ(how.momentum, 0.5);
  EXPECT_FALSE(how.nesterov);
  EXPECT_EQ(how.iterations, 3);
  EXPECT_THAT(stepped_by_muon({{"adjust_lr_fn", "original"}}, how),
              Each(DoubleNear(decayed - 0.25 * std::sqrt(3.0), 1e-15)));
  EXPECT_EQ(how.momentum, 0.95);
  EXPECT_TRUE(how.nesterov);
  EXPECT_EQ(how.iterations, 5);
}

// Of a parameter of 3 elements in its fourth update, whose direction is 1 everywhere.
TEST(MakeUpdate, AdafactorStepsAlongTheDirectionOfTheMixedParameter) {
  std::vector<double> x(3, 2.0), received(3, 4.0), grad(3, 0.5), direction(3);
  void* const states[] = {direction.data()};
  const std::vector<BucketSlice> slices = {
      {.numel = 3, .grad = grad.data(), .weight_decay = 0.5, .lr_scale = 4, .updates = 4}};
  BucketStep step;
  step.x = x.data();
  step.numel = 3;
  step.states = states;
  step.scalar = Scalar::float64;
  step.mixing = {.self = 0.5, .other = 0.5, .received = received.data()};
  step.slices = slices;
  step.lr = 0.25;
  EXPECT_THROW(make_update("adafactor")->apply(step), std::logic_error);
  x.assign(3, 2.0);  // it had mixed
  step.factored_work = [&](const BucketStep& given, const BucketSlice& slice,
                           const FactoredStep& how) {
    EXPECT_EQ(slice.grad, grad.data());
    EXPECT_THAT(x, Each(3.0));
    EXPECT_FALSE(given.mixing.mixes());
    EXPECT_EQ(how.share, 0.5);  // 4^-0.5
    EXPECT_EQ(how.rho, 0.5);    // 1 / sqrt(4), not 4 * 0.25
    EXPECT_EQ(how.eps1, std::optional(0.125));
    std::fill(direction.begin(), direction.end(), 1.0);
  };
  make_update("adafactor", {{"beta2_decay", -0.5}, {"eps1", 0.125}})->apply(step);
  EXPECT_THAT(x, Each(3.0 - 1.0 * 0.5 * 3.0 - 1.0));
}

TEST(MakeUpdate, HasDefaultsForRecipes) {
  EXPECT_EQ(default_weight_decay("adamw"), 0.1);
  EXPECT_EQ(default_weight_decay("accum_adamw"), 0.1);
  for (const char* name : {"adafactor", "adam", "adagrad", "nadam", "nadamw", "radam", "radamw"})
    EXPECT_EQ(default_weight_decay(name), 0) << name;
  EXPECT_EQ(find_named(update_table(), "sgd")->key("momentum")->fallback, OptionValue(0.9));
  EXPECT_EQ(find_named(update_table(), "adagrad")->key("eps")->fallback, OptionValue(1e-10));
  EXPECT_EQ(find_named(update_table(), "adam")->key("betas")->fallback,
            OptionValue(std::array{0.9, 0.999}));
  EXPECT_EQ(usual_options(update_table()).value("momentum"), OptionValue(0.9));
  EXPECT_THAT(refusal([] { default_weight_decay("adamW"); }), HasSubstr("unknown update 'adamW'"));
}

// Where rows have an option of the same name, recipes have one key for it.
TEST(OptionTables, OptionsOfTheSameNameAreDescribedAlike) {
  for (const auto& table : {update_table(), schedule_table()}) {
    std::map<std::string, OptionKey> known;
    for (const NamedOptions& row : table) {
      for (const OptionKey& key : row.keys) {
        const OptionKey& first = known.emplace(key.name, key).first->second;
        EXPECT_EQ(key.type, first.type) << row.name << " " << key.name;
        EXPECT_EQ(key.meaning, first.meaning) << row.name << " " << key.name;
        EXPECT_EQ(key.range.text(), first.range.text()) << row.name << " " << key.name;
        EXPECT_EQ(key.names, first.names) << row.name << " " << key.name;
        EXPECT_EQ(key.is_nullable(), first.is_nullable()) << row.name << " " << key.name;
      }
    }
  }
}

TEST(MakeUpdate, RefusesWhatIsNone) {
  EXPECT_THAT(refusal([] { make_update("adadelta"); }),
              AllOf(HasSubstr("'adadelta'"), HasSubstr("adamw, adam, sgd")));
  EXPECT_THAT(refusal([] { make_update("w"); }), HasSubstr("unknown"));
  const auto with = [](const Options& options, std::string_view name) {
    return refusal([&] { make_update(name, options); });
  };
  EXPECT_THAT(with({{"momentum", 1.0}}, "sgd"), HasSubstr("momentum is 1: it must be in [0, 1)"));
  EXPECT_THAT(with({{"momentum", std::nan("")}}, "sgd"), HasSubstr("[0, 1)"));
  EXPECT_THAT(with({{"nesterov", true}}, "sgd"), HasSubstr("nesterov: true needs momentum > 0"));
  EXPECT_THAT(with({{"betas", std::array{-0.1, 0.999}}}, "adam"), HasSubstr("betas[0] is -0.1"));
  EXPECT_THAT(with({{"betas", std::array{0.9, 1.0}}}, "accum_adamw"), HasSubstr("betas[1] is 1:"));
  EXPECT_THAT(with({{"eps", -1}}, "adamw"), HasSubstr("eps"));
  EXPECT_THAT(with({{"accum_iter", 0}}, "accum_adam"), HasSubstr("accum_iter is 0"));
  EXPECT_THAT(with({{"lr_decay", -0.1}}, "adagrad"), HasSubstr("lr_decay is -0.1"));
  EXPECT_THAT(with({{"initial_accumulator_value", -1}}, "adagrad"),
              HasSubstr("initial_accumulator_value is -1"));
  EXPECT_THAT(with({{"momentum_decay", -1}}, "nadamw"), HasSubstr("momentum_decay is -1"));
  EXPECT_THAT(with({{"beta2_decay", 0.8}}, "adafactor"),
              HasSubstr("beta2_decay is 0.8: it must be <= 0"));
  EXPECT_THAT(with({{"d", 0.5}}, "adafactor"), HasSubstr("d is 0.5: it must be >= 1"));
  EXPECT_EQ(with({{"momentum", 2}, {"accum_iter", 0}}, "adam"), "accepted");  // not its own
  EXPECT_THAT(with({{"nesterov", 1.0}}, "sgd"),
              HasSubstr("nesterov: expected true or false, got a number"));
  EXPECT_THAT(with({{"beta1", 0.9}}, "adam"),
              AllOf(HasSubstr("no optimizer has an option 'beta1'"), HasSubstr("betas, eps")));
}

// Its first round never ends and must be counted as the first: with moments that are still zero
// each of its updates is Adam's first, x - lr * g / (|g| + eps).
TEST(MakeUpdate, TakesTheLongestRound) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  constexpr double kLr = 0.1;
  constexpr double kEps = 1e-8;
  BucketProblem<float> problem({100, 7});
  for (auto* state : {&problem.state0, &problem.state1, &problem.state2}) {
    std::fill(state->begin(), state->end(), 0.0F);
  }
  for (BucketSlice& slice : problem.slices) slice.updates = 2;
  const BucketProblem<float> before = problem;
  problem.apply(*make_update("accum_adam", {{"eps", kEps}, {"accum_iter", kLongest}}),
                testing::mixing_of(1, 0), kLr);
  for (std::size_t i = 0; i < problem.slices.size(); ++i) {
    const auto offset = static_cast<std::size_t>(problem.slices[i].offset);
    for (std::size_t j = 0; j < problem.grads[i].size(); ++j) {
      const double g = problem.grads[i][j];
      const double expected = before.x[offset + j] - kLr * g / (std::abs(g) + kEps);
      // Some roundings of float32 at a magnitude of at most 4.
      EXPECT_NEAR(problem.x[offset + j], expected, 1e-6) << j;
    }
  }
}

TEST(MakeSchedule, MakesEveryNamedOne) {
  const ScheduleOptions options{.lr = 0.4, .options = {{"warmup_steps", 4}, {"t_max", 10}}};
  const Schedule cosine = make_schedule("cosine_warmup", options);
  const Schedule expected = cosine_warmup({.lr = 0.4, .warmup_steps = 4, .t_max = 10});
  for (const std::int64_t t : {1, 3, 5, 9, 20}) EXPECT_EQ(cosine(t), expected(t));
  EXPECT_EQ(make_schedule("constant", options)(7), 0.4);
}

TEST(MakeSchedule, RefusesWhatIsNone) {
  EXPECT_THAT(refusal([] { make_schedule("cosine", {}); }),
              AllOf(HasSubstr("'cosine'"), HasSubstr("constant, cosine_warmup, linear")));
  EXPECT_EQ(refusal([] { make_schedule("step", {}); }), "schedule: step needs step_size");
  EXPECT_EQ(refusal([] { make_schedule("exponential", {}); }), "schedule: exponential needs gamma");
  const auto with = [](std::string_view name, const Options& options) {
    return refusal([&] { make_schedule(name, {.options = options}); });
  };
  EXPECT_EQ(with("exponential", {{"gamma", 0}}), "schedule: gamma is 0: it must be > 0");
  EXPECT_EQ(with("exponential", {{"gamma", std::numeric_limits<double>::infinity()}}),
            "schedule: gamma is inf: it must be > 0");
  EXPECT_EQ(with("linear", {{"start_factor", 0.0}}),
            "schedule: start_factor is 0: it must be in (0, 1]");
  EXPECT_EQ(with("one_cycle", {{"anneal_strategy", "cosine"}}),
            "schedule: anneal_strategy is 'cosine': it must be cos or linear");
  EXPECT_EQ(with("step", {{"step_size", 0.5}}),
            "schedule: step_size: expected an integer, got a number");
  EXPECT_THAT(with("step", {{"stepsize", 5}}),
              AllOf(HasSubstr("no schedule has an option 'stepsize'"), HasSubstr("step_size")));
  EXPECT_THAT(refusal([] { cosine_warmup({.t_max = 0}); }), HasSubstr("t_max is 0"));
  EXPECT_THAT(refusal([] { cosine_warmup({.warmup_steps = -1}); }),
              HasSubstr("warmup_steps is -1"));
}

}  // namespace
}  // namespace decent
