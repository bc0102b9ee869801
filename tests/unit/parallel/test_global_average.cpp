#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training.h"

namespace decent {
namespace {

using testing::Models;
using testing::Settings;

const testing::Problem kPerceptron = testing::perceptron();

Settings settings_for(const std::string& topology, int workers) {
  return {.workers = workers,
          .topology = make_topology(topology, workers, 1),
          .gamma = 0.6,
          .bucket_mb = 3e-4};
}

Models mean_of(const Models& models) {
  std::vector<at::Tensor> means;
  for (std::size_t p = 0; p < models[0].size(); ++p) {
    std::vector<at::Tensor> all;
    for (const auto& model : models) all.push_back(model[p]);
    means.push_back(at::stack(all).mean(0));
  }
  return Models(models.size(), means);
}

// sqrt(mean over workers of ||x_i - mean||^2).
double distance_of(const Models& models) {
  const Models mean = mean_of(models);
  double squares = 0;
  for (std::size_t rank = 0; rank < models.size(); ++rank) {
    for (std::size_t p = 0; p < models[rank].size(); ++p) {
      squares += (models[rank][p] - mean[rank][p]).square().sum().item<double>();
    }
  }
  return std::sqrt(squares / static_cast<double>(models.size()));
}

// What every worker saw of one average.
struct Seen {
  std::vector<at::Tensor> before, average, after;
  std::optional<double> distance;
};

Models collect(const std::vector<Seen>& seen, std::vector<at::Tensor> Seen::*member) {
  Models result;
  for (const Seen& s : seen) result.push_back(s.*member);
  return result;
}

// Trains four steps, then lets every worker average and note what it sees.
template <typename Act>
std::vector<Seen> after_four_steps(const Settings& settings, const Act& act) {
  return testing::run_workers(settings.workers, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = kPerceptron.parameters();
    DecentralizedParameters parallel(testing::named(x), {}, world, settings.options());
    for (std::int64_t t = 1; t <= 4; ++t) kPerceptron.loss(x, world->rank(), t).backward();
    Seen seen{.before = testing::copies(x), .average = {}, .after = {}, .distance = {}};
    act(parallel, x, seen);
    seen.after = testing::copies(x);
    parallel.global_avg(false);
    return seen;
  });
}

class GlobalAverageOf : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  Settings settings() const {
    return settings_for(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Runs, GlobalAverageOf,
                         ::testing::Combine(::testing::Values("ring", "complete"),
                                            ::testing::Values(1, 2, 3, 4)));

TEST_P(GlobalAverageOf, IsTheMeanAndGoesBack) {
  const auto seen = after_four_steps(
      settings(), [](DecentralizedParameters& parallel, std::vector<at::Tensor>& x, Seen& s) {
        s.distance = parallel.global_avg(true, true);
        s.average = testing::copies(x);
        parallel.revert_global_avg();
      });
  const Models before = collect(seen, &Seen::before);
  const Models average = collect(seen, &Seen::average);
  testing::expect_near(average, mean_of(before), "mean");
  testing::expect_same_bits(average, Models(seen.size(), seen[0].average), "alike");
  testing::expect_same_bits(collect(seen, &Seen::after), before, "reverted");
  for (const Seen& s : seen) {
    ASSERT_TRUE(s.distance.has_value());
    EXPECT_NEAR(*s.distance, distance_of(before), 1e-13);  // sums of some 70 squares below 1
  }
  if (seen.size() > 1) {
    EXPECT_GT(*seen[0].distance, 1e-3);
  }
}

TEST_P(GlobalAverageOf, LeavesNoTraceInTheRun) {
  const auto expected = testing::train(settings(), kPerceptron, 12);
  const auto evaluate = [](const testing::Session& session) {
    if (session.t % 3 != 0) return;
    session.parallel.global_avg();
    session.parallel.revert_global_avg();
  };
  testing::expect_same_bits(testing::train(settings(), kPerceptron, 12, evaluate), expected);
  const auto evaluate_twice = [&](const testing::Session& session) {
    evaluate(session);
    evaluate(session);
    session.parallel.take_wait_seconds();
  };
  testing::expect_same_bits(testing::train(settings(), kPerceptron, 12, evaluate_twice), expected);
}

TEST_P(GlobalAverageOf, WithoutRevertIsWhereTheRunGoesOn) {
  for (const std::int64_t when : {1, 4}) {
    testing::Reference reference(settings(), kPerceptron);
    for (std::int64_t t = 1; t <= 9; ++t) {
      reference.step();
      if (t == when) reference.average();
    }
    Models expected;
    for (int rank = 0; rank < settings().workers; ++rank) expected.push_back(reference.of(rank));
    const auto average_once = [&](const testing::Session& session) {
      if (session.t == when) {
        EXPECT_FALSE(session.parallel.global_avg(false).has_value());
      }
    };
    const auto actual = testing::train(settings(), kPerceptron, 9, average_once);
    testing::expect_near(actual, expected, "average after step " + std::to_string(when));
  }
}

const Settings kPair = settings_for("ring", 2);

TEST(GlobalAverage, AgainChangesNothing) {
  const auto seen = after_four_steps(
      kPair, [](DecentralizedParameters& parallel, std::vector<at::Tensor>& x, Seen& s) {
        const auto first = parallel.global_avg(true, true);
        s.average = testing::copies(x);
        EXPECT_EQ(parallel.global_avg(true, true), first);
        testing::expect_same_bits({x}, {s.average}, "again");
        EXPECT_FALSE(parallel.global_avg(true, false).has_value());
        parallel.revert_global_avg();
      });
  testing::expect_same_bits(collect(seen, &Seen::after), collect(seen, &Seen::before));
}

TEST(GlobalAverage, TellsTheDistanceWhenAskedTheSecondTime) {
  const auto seen = after_four_steps(
      kPair, [](DecentralizedParameters& parallel, std::vector<at::Tensor>&, Seen& s) {
        EXPECT_FALSE(parallel.global_avg(true, false).has_value());
        s.distance = parallel.global_avg(true, true);
        parallel.revert_global_avg();
      });
  const double expected = distance_of(collect(seen, &Seen::before));
  EXPECT_NEAR(seen[0].distance.value(), expected, 1e-13);
}

TEST(GlobalAverage, MayBeKeptAfterAll) {
  testing::Reference reference(kPair, kPerceptron);
  for (std::int64_t t = 1; t <= 6; ++t) {
    reference.step();
    if (t == 3) reference.average();
  }
  const auto keep = [](const testing::Session& session) {
    if (session.t != 3) return;
    session.parallel.global_avg(true);
    session.parallel.global_avg(false);
    EXPECT_THROW(session.parallel.revert_global_avg(), std::logic_error);
  };
  testing::expect_near(testing::train(kPair, kPerceptron, 6, keep),
                       {reference.of(0), reference.of(1)});
}

TEST(GlobalAverage, BeforeTheFirstStepChangesNothing) {
  const auto distances = testing::run_workers(2, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = kPerceptron.parameters();
    const auto before = testing::copies(x);
    DecentralizedParameters parallel(testing::named(x), {}, world, kPair.options());
    const auto distance = parallel.global_avg(true, true);
    testing::expect_same_bits({x}, {before});  // (a + a) / 2 is exact
    parallel.revert_global_avg();
    return distance;
  });
  EXPECT_EQ(distances[0], 0.0);
}

TEST(GlobalAverage, RevertNeedsAnAverage) {
  std::vector<at::Tensor> x = kPerceptron.parameters();
  DecentralizedParameters parallel(testing::named(x), {}, make_single_worker(),
                                   settings_for("ring", 1).options());
  EXPECT_THROW(parallel.revert_global_avg(), std::logic_error);
  parallel.global_avg(false);
  EXPECT_THROW(parallel.revert_global_avg(), std::logic_error);
  parallel.global_avg(true);
  EXPECT_NO_THROW(parallel.revert_global_avg());
  EXPECT_THROW(parallel.revert_global_avg(), std::logic_error);
}

TEST(GlobalAverage, IsNotTrained) {
  std::vector<at::Tensor> x = kPerceptron.parameters();
  DecentralizedParameters parallel(testing::named(x), {}, make_single_worker(),
                                   settings_for("ring", 1).options());
  parallel.global_avg(true);
  try {
    kPerceptron.loss(x, 0, 1).backward();
    ADD_FAILURE() << "no error";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("revert_global_avg()"));
  }
  EXPECT_EQ(parallel.step(), 0);
}

// Buffers of worker i: floats i, halves i, a transposed matrix, integers 10 i and a flag.
NamedTensors buffers_of(int rank) {
  const double i = rank;
  return {{"mean", at::full({3}, 0.1 * i, at::kDouble)},
          {"half", at::full({2}, i, at::kHalf)},
          {"transposed", testing::scattered({4, 3}, i).t()},
          {"scalar", at::full({}, 7 * i, at::kFloat)},
          {"count", at::full({2}, 10 * i, at::kLong)},
          {"flag", at::full({}, rank == 0, at::kBool)}};
}

class BufferAverage : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Average, BufferAverage, ::testing::Bool());

TEST_P(BufferAverage, AveragesFloatsOrTakesRankZeros) {
  constexpr int kWorkers = 3;
  const auto averages = testing::run_workers(kWorkers, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = kPerceptron.parameters();
    const NamedTensors buffers = buffers_of(0);
    DecentralizedOptions options = settings_for("ring", kWorkers).options();
    options.training.average_buffers = GetParam();
    DecentralizedParameters parallel(testing::named(x), buffers, world, options);
    const NamedTensors own = buffers_of(world->rank());
    for (std::size_t i = 0; i < own.size(); ++i) buffers[i].second.copy_(own[i].second);
    parallel.global_avg(true);
    std::vector<at::Tensor> result;
    for (const auto& entry : buffers) result.push_back(entry.second.clone());
    parallel.revert_global_avg();
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_TRUE(at::equal(buffers[i].second, own[i].second)) << own[i].first << " reverted";
    }
    return result;
  });
  const NamedTensors first = buffers_of(0);
  for (std::size_t i = 0; i < first.size(); ++i) {
    at::Tensor expected = first[i].second.to(at::kDouble);
    if (GetParam() && first[i].second.is_floating_point()) {
      expected = (expected + buffers_of(1)[i].second + buffers_of(2)[i].second) / kWorkers;
    }
    for (const auto& average : averages) {
      EXPECT_TRUE(average[i].to(at::kDouble).allclose(expected, 1e-6, 1e-15))  // float32 scalars
          << first[i].first;
      EXPECT_TRUE(at::equal(average[i], averages[0][i])) << first[i].first << " alike";
    }
  }
}

}  // namespace
}  // namespace decent
