#pragma once
// Trains a problem with DecentralizedParameters on N threads.

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "../support/workers.h"
#include "reference.h"

namespace decent::testing {

using Models = std::vector<std::vector<at::Tensor>>;  // by rank, by parameter

/// What a test may do between two steps.
struct Session {
  DecentralizedParameters& parallel;
  Communicator& world;
  std::vector<at::Tensor>& parameters;
  std::int64_t t;  // the step just done
};
using AfterStep = std::function<void(Session)>;

inline Models train(
    const Settings& settings, const Problem& problem, std::int64_t steps,
    const AfterStep& after_step = [](const Session&) {}) {
  return run_workers(settings.workers, [&](const Worker& world) {
    std::vector<at::Tensor> parameters = problem.parameters();
    DecentralizedParameters parallel(named(parameters), {}, world, settings.options());
    for (std::int64_t t = 1; t <= steps; ++t) {
      problem.loss(parameters, world->rank(), t).backward();
      EXPECT_EQ(parallel.step(), t);
      after_step({parallel, *world, parameters, t});
    }
    std::vector<at::Tensor> result = copies(parameters);
    parallel.global_avg(false);  // waits for all that is under way
    return result;
  });
}

inline Models train_reference(const Settings& settings, const Problem& problem,
                              std::int64_t steps) {
  Reference reference(settings, problem);
  for (std::int64_t t = 1; t <= steps; ++t) reference.step();
  Models result;
  for (int rank = 0; rank < settings.workers; ++rank) result.push_back(reference.of(rank));
  return result;
}

/// Float64 and at most some 20 steps: each step adds some 30 roundings of 1.1e-16 to values of
/// about 1, and Adam divides errors of the gradient by gradients, of which the smallest here are
/// about 1e-4.
constexpr double kTolerance = 1e-10;

inline void expect_near(const Models& actual, const Models& expected,
                        const std::string& what = "") {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t rank = 0; rank < actual.size(); ++rank) {
    for (std::size_t p = 0; p < actual[rank].size(); ++p) {
      if (actual[rank][p].numel() == 0) continue;
      const auto distance = (actual[rank][p] - expected[rank][p]).abs().max().item<double>();
      EXPECT_LE(distance, kTolerance) << what << ", worker " << rank << ", parameter " << p;
    }
  }
}

inline void expect_same_bits(const Models& actual, const Models& expected,
                             const std::string& what = "") {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t rank = 0; rank < actual.size(); ++rank) {
    for (std::size_t p = 0; p < actual[rank].size(); ++p) {
      EXPECT_TRUE(at::equal(actual[rank][p], expected[rank][p]))
          << what << ", worker " << rank << ", parameter " << p;
    }
  }
}

/// Edges of one, two and three members with weights of all kinds.
inline const std::vector<Phase> kUnevenPhases = {{{{0, 2}, 0.7}, {{1}, 1.0}}, {{{0, 1, 2}, 0.4}}};

inline Settings of_three() { return {.workers = 3, .topology = kUnevenPhases, .bucket_mb = 3e-4}; }

}  // namespace decent::testing
