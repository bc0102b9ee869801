// What a user's own code sees and does inside a step: the pre-average callback, an update of their
// own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/optim/bucket_update.h"
#include "training.h"

namespace decent {
namespace {

using testing::Settings;

struct Shown {
  std::int64_t step;
  std::size_t bucket;
  Edge edge;
  at::Tensor local, received;
};

// Everything that the callback is shown, by rank.
std::vector<std::vector<Shown>> watch(const Settings& settings, std::int64_t steps,
                                      testing::Models* models = nullptr) {
  const testing::Problem problem = testing::perceptron();
  std::vector<std::vector<Shown>> all;
  testing::Models trained;
  for (
      auto& [seen, x] : testing::run_workers(settings.workers, [&](const testing::Worker& world) {
        std::vector<Shown> seen;
        std::vector<at::Tensor> x = problem.parameters();
        DecentralizedOptions options = settings.options();
        options.pre_average = [&seen](const PreAverage& now) {
          seen.push_back({now.step, now.bucket, now.edge, now.local.clone(), now.received.clone()});
        };
        DecentralizedParameters parallel(testing::named(x), {}, world, options);
        for (std::int64_t t = 1; t <= steps; ++t) problem.loss(x, world->rank(), t).backward();
        const auto result = testing::copies(x);
        parallel.global_avg(false);
        return std::pair(seen, result);
      })) {
    all.push_back(std::move(seen));
    trained.push_back(std::move(x));
  }
  if (models != nullptr) *models = trained;
  return all;
}

TEST(PreAverage, ShowsEdgeLocalAndReceived) {
  const auto seen = watch(testing::of_three(), 5);
  // Step 1 does not mix; phase 0 in steps 2 and 4, where worker 1 is alone, phase 1 in 3 and 5.
  const std::size_t buckets = seen[1].size() / 2;
  ASSERT_GT(buckets, 1U);
  ASSERT_EQ(seen[0].size(), 4 * buckets);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < seen[rank].size(); ++i) {
      const Shown& now = seen[rank][i];
      EXPECT_EQ(now.bucket, i % buckets);
      EXPECT_EQ(now.edge, testing::kUnevenPhases[static_cast<std::size_t>(now.step % 2)][0]);
      at::Tensor others = at::zeros_like(now.local);
      for (const int other : now.edge.ranks) {
        if (other == static_cast<int>(rank)) continue;
        const auto& theirs = seen[static_cast<std::size_t>(other)];
        const auto same = std::find_if(theirs.begin(), theirs.end(), [&](const Shown& s) {
          return s.step == now.step && s.bucket == now.bucket;
        });
        ASSERT_NE(same, theirs.end());
        others += same->local;
      }
      others /= static_cast<double>(now.edge.ranks.size() - 1);
      // A pair's is the peer's itself; a larger edge's is a sum less the own one.
      EXPECT_TRUE(now.received.allclose(others, 0, now.edge.ranks.size() == 2 ? 0 : 1e-15));
    }
  }
}

TEST(PreAverage, ChangesNothing) {
  testing::Models watched;
  watch(testing::of_three(), 6, &watched);
  testing::expect_same_bits(watched, testing::train(testing::of_three(), testing::perceptron(), 6));
}

TEST(PreAverage, IsNotCalledWithoutNeighbours) {
  const auto seen = watch({.topology = make_topology("complete", 1, 1)}, 4);
  EXPECT_TRUE(seen[0].empty());
}

// SGD with momentum 0.9 and decay, as a user would write it.
class OwnSgd : public BucketUpdate {
 public:
  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"velocity"};
    return names;
  }

  void apply(const BucketStep& step) const override {
    mix(step.x, step.numel, step.scalar, step.mixing, step.kernels);
    auto* x = static_cast<double*>(step.x);
    auto* velocity = static_cast<double*>(step.states[0]);
    for (const BucketSlice& slice : step.slices) {
      if (slice.grad == nullptr) continue;
      const auto* grad = static_cast<const double*>(slice.grad);
      for (std::int64_t i = 0; i < slice.numel; ++i) {
        const std::int64_t at = slice.offset + i;
        const double g = step.grad_scale * grad[i] + slice.weight_decay * x[at];
        velocity[at] = 0.9 * velocity[at] + g;
        x[at] -= step.lr * slice.lr_scale * velocity[at];
      }
    }
  }
};

TEST(OwnUpdate, TrainsAsTheReferenceDoes) {
  Settings settings = testing::of_three();
  settings.adamw = false;
  settings.gamma = 0.8;
  const testing::Problem problem = testing::perceptron();
  const auto models = testing::run_workers(settings.workers, [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedOptions options = settings.options();
    options.training.update = std::make_shared<OwnSgd>();
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 8; ++t) problem.loss(x, world->rank(), t).backward();
    const auto result = testing::copies(x);
    EXPECT_EQ(parallel.training_state()[1].first, "optimizer.p5.velocity");
    parallel.global_avg(false);
    return result;
  });
  testing::expect_near(models, testing::train_reference(settings, problem, 8));
}

}  // namespace
}  // namespace decent
