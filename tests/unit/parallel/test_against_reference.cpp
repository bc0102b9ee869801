#include <gtest/gtest.h>

#include "training.h"

namespace decent {
namespace {

using testing::Settings;

struct Case {
  std::string name;
  int workers;
  std::vector<Phase> topology;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " of " << c.workers; }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int n : {1, 2, 3, 4}) {
    for (const char* name : {"complete", "ring", "one-peer-exp"}) {
      cases.push_back({name, n, make_topology(name, n, 1)});
    }
  }
  for (const auto& [n, local] : {std::pair(2, 1), {4, 1}, {4, 2}}) {
    cases.push_back({"alternating-exp-ring", n, make_topology("alternating-exp-ring", n, local)});
  }
  // Uneven weights, a group of three that is not all, and a phase of rest.
  cases.push_back({"custom", 3, {{{{0, 1, 2}, 0.2}}, {{{0, 2}, 0.9}, {{1}, 1.0}}}});
  cases.push_back({"custom",
                   4,
                   {{{{0, 1, 3}, 0.5}, {{2}, 1.0}},
                    {{{0}, 1.0}, {{1}, 1.0}, {{2}, 1.0}, {{3}, 1.0}},
                    {{{1, 2, 3}, 0.7}, {{0}, 1.0}},
                    {{{0, 3}, 0.3}, {{1, 2}, 1.0}}}});
  return cases;
}

class Training : public ::testing::TestWithParam<Case> {
 protected:
  Settings settings(double gamma, bool adamw, double bucket_mb) const {
    return {.workers = GetParam().workers,
            .topology = GetParam().topology,
            .gamma = gamma,
            .adamw = adamw,
            .bucket_mb = bucket_mb};
  }
  const testing::Problem problem_ = testing::perceptron();
};
INSTANTIATE_TEST_SUITE_P(Topologies, Training, ::testing::ValuesIn(all_cases()));

constexpr std::int64_t kSteps = 12;
constexpr double kTinyBuckets =
    3e-4;  // 314 bytes: several parameters in one, a bucket each for others

// Connecting the threads takes longest, so not every combination is run.
TEST_P(Training, EqualsTheDefinition) {
  for (const double gamma : {0.0, 0.6, 1.0}) {
    for (const bool adamw : {false, true}) {
      const Settings s = settings(gamma, adamw, adamw == (gamma == 0.6) ? kTinyBuckets : 25);
      testing::expect_near(testing::train(s, problem_, kSteps),
                           testing::train_reference(s, problem_, kSteps),
                           (adamw ? "adamw, gamma " : "sgd, gamma ") + std::to_string(gamma));
    }
  }
}

TEST_P(Training, DoesNotDependOnBucketsAndWhenTheyAreUpdated) {
  const auto expected = testing::train(settings(0.6, true, 25), problem_, kSteps);
  for (const double bucket_mb : {1e-9, kTinyBuckets}) {
    Settings s = settings(0.6, true, bucket_mb);
    if (bucket_mb == kTinyBuckets) s.update_time = UpdateTime::after_backward;
    const auto actual = testing::train(s, problem_, kSteps);
    // Where all-reduce adds three or more, the order of additions is by place in the bucket.
    testing::expect_near(actual, expected, std::to_string(bucket_mb) + " MiB");
    s.update_time = UpdateTime::in_backward;
    if (bucket_mb == kTinyBuckets) {
      testing::expect_same_bits(actual, testing::train(s, problem_, kSteps),
                                "in and after backward");
    }
  }
}

// Otherwise the comparisons above could not tell right phases from wrong ones.
TEST(TrainingReference, TellsPhasesApart) {
  const testing::Problem problem = testing::perceptron();
  Settings a{.workers = 4, .topology = make_topology("ring", 4, 1)};
  Settings b = a;
  std::swap(b.topology[0], b.topology[1]);
  const auto x = testing::train_reference(a, problem, kSteps);
  const auto y = testing::train_reference(b, problem, kSteps);
  EXPECT_GT((x[0][0] - y[0][0]).abs().max().item<double>(), 1e-3);
}

}  // namespace
}  // namespace decent
