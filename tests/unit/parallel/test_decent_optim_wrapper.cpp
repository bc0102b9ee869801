// DecentOptimWrapper: training. What it refuses is in test_decent_optim_wrapper_misuse.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include "decent/parallel/decent_optim_wrapper.h"
#include "training.h"

namespace decent {
namespace {

using testing::Models;
using testing::Worker;

std::shared_ptr<torch::optim::SGD> sgd(const std::vector<at::Tensor>& x, double lr) {
  return std::make_shared<torch::optim::SGD>(x, torch::optim::SGDOptions(lr));
}

// ---- closed forms
//
// Worker i's loss is (x - c_i)^2 / 2, its rate q. Where every mixing gives the mean of all workers,
// the mean follows gradient descent on the mean loss, and the distance from it d_i obeys
// d' = -q (d - (c_i - c)), as mixing sets it to 0 but the gradient is that of the weights before:
//
//     mean_t = c + (1 - q)^t (x_0 - c),   d_i,t = (c_i - c) q (1 - (-q)^t) / (1 + q)
//
// In step 1 nothing is mixed, but the workers start alike, which comes to the same.

constexpr double kRate = 0.3;
constexpr double kStart = 2.0;

double goal_of(int rank) { return 1.0 + 0.5 * rank * rank; }

double closed_form(int workers, int rank, int t) {
  double goal = 0;
  for (int i = 0; i < workers; ++i) goal += goal_of(i) / workers;
  const double mean = goal + std::pow(1 - kRate, t) * (kStart - goal);
  const double apart = kRate * (1 - std::pow(-kRate, t)) / (1 + kRate);
  return mean + (goal_of(rank) - goal) * apart;
}

void expect_closed_form(const std::string& topology, int workers) {
  testing::run_workers(workers, [&](const Worker& world) {
    const at::Tensor x = at::tensor({kStart}, at::kDouble).requires_grad_();
    DecentOptimWrapper optimizer(sgd({x}, kRate), topology, world);
    for (int t = 1; t <= 8; ++t) {
      optimizer.zero_grad();
      (0.5 * (x - goal_of(world->rank())).square()).sum().backward();
      optimizer.step();
      EXPECT_NEAR(x.item<double>(), closed_form(workers, world->rank(), t), 1e-14) << "step " << t;
    }
    EXPECT_EQ(optimizer.steps(), 8);
    optimizer.global_avg(false);
    return 0;
  });
}

TEST(DecentOptimWrapper, RingOfTwoFollowsTheClosedForm) { expect_closed_form("ring", 2); }
TEST(DecentOptimWrapper, CompleteOfThreeFollowsTheClosedForm) { expect_closed_form("complete", 3); }

// ---- against the reference: SGD with momentum, two groups, a rate that changes every step

const testing::Problem kProblem = testing::perceptron();

std::shared_ptr<torch::optim::SGD> momentum_sgd(const std::vector<at::Tensor>& x, double decay) {
  std::vector<at::Tensor> decaying, others;
  for (const at::Tensor& tensor : x) (tensor.dim() >= 2 ? decaying : others).push_back(tensor);
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(1.0).momentum(0.9);
  using Group = torch::optim::OptimizerParamGroup;
  auto with_decay = std::make_unique<torch::optim::SGDOptions>(options);
  with_decay->weight_decay(decay);
  auto without = std::make_unique<torch::optim::SGDOptions>(options);
  return std::make_shared<torch::optim::SGD>(
      std::vector<Group>{{decaying, std::move(with_decay)}, {others, std::move(without)}}, options);
}

struct AfterOptimStep {
  DecentOptimWrapper& optimizer;
  const std::vector<at::Tensor>& x;
  std::int64_t t;
};

Models train(
    const testing::Settings& settings, std::int64_t steps,
    const std::function<void(AfterOptimStep)>& after_step = [](AfterOptimStep) {},
    bool by_closure = false) {
  return testing::run_workers(settings.workers, [&](const Worker& world) {
    std::vector<at::Tensor> x = kProblem.parameters();
    const auto inner = momentum_sgd(x, settings.weight_decay);
    DecentOptimWrapper optimizer(inner, settings.topology, world, settings.bucket_mb);
    for (std::int64_t t = 1; t <= steps; ++t) {
      for (auto& group : inner->param_groups()) group.options().set_lr(testing::Settings::lr(t));
      const auto closure = [&] {
        optimizer.zero_grad();
        const at::Tensor loss = kProblem.loss(x, world->rank(), t);
        loss.backward();
        return loss;
      };
      if (by_closure) {
        const at::NoGradGuard the_caller_does_not_care;
        EXPECT_TRUE(optimizer.step(closure).defined());
      } else {
        closure();
        EXPECT_FALSE(optimizer.step().defined());
      }
      after_step({optimizer, x, t});
    }
    std::vector<at::Tensor> result = testing::copies(x);
    optimizer.global_avg(false);  // waits for all that is under way
    return result;
  });
}

testing::Settings settings_of(std::vector<Phase> topology, int workers) {
  return {.workers = workers,
          .topology = std::move(topology),
          .gamma = 1,
          .adamw = false,
          .bucket_mb = 3e-4};  // three buckets
}

testing::Settings ring_of(int workers) {
  return settings_of(make_topology("ring", workers, 1), workers);
}

class DecentOptimWrapperRing : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, DecentOptimWrapperRing, ::testing::Values(1, 2, 3, 4));

TEST_P(DecentOptimWrapperRing, TrainsAsTheReference) {
  const testing::Settings settings = ring_of(GetParam());
  testing::expect_near(train(settings, 12), testing::train_reference(settings, kProblem, 12));
}

TEST_P(DecentOptimWrapperRing, AClosureIsTheSameAsBackwardBeforeStep) {
  const testing::Settings settings = ring_of(GetParam());
  testing::expect_same_bits(train(
                                settings, 6, [](AfterOptimStep) {}, true),
                            train(settings, 6));
}

TEST_P(DecentOptimWrapperRing, AveragingAndRevertingLeavesNoTrace) {
  const testing::Settings settings = ring_of(GetParam());
  const auto average_twice = [](const AfterOptimStep& after) {
    if (after.t % 3 == 0) return;
    const auto own = testing::copies(after.x);
    const auto first = after.optimizer.global_avg(true, true);
    const auto average = testing::copies(after.x);
    EXPECT_EQ(after.optimizer.global_avg(true, true), first);
    testing::expect_same_bits({after.x}, {average}, "averaged twice");
    after.optimizer.revert_global_avg();
    testing::expect_same_bits({after.x}, {own}, "reverted");
  };
  testing::expect_same_bits(train(settings, 9, average_twice), train(settings, 9));
}

TEST_P(DecentOptimWrapperRing, GoesOnFromTheAverage) {
  const testing::Settings settings = ring_of(GetParam());
  for (const std::int64_t when : {1, 4}) {
    testing::Reference reference(settings, kProblem);
    for (std::int64_t t = 1; t <= 8; ++t) {
      reference.step();
      if (t == when) reference.average();
    }
    Models expected;
    for (int rank = 0; rank < settings.workers; ++rank) expected.push_back(reference.of(rank));
    const auto average = [&](const AfterOptimStep& after) {
      if (after.t != when) return;
      EXPECT_FALSE(after.optimizer.global_avg(false).has_value());
      const at::NoGradGuard no_grad;
      for (const at::Tensor& x : after.x) x.mul_(1.0);  // writing is allowed now
    };
    testing::expect_near(train(settings, 8, average), expected, "after " + std::to_string(when));
  }
}

TEST(DecentOptimWrapper, TakesAnyPhases) {
  const std::vector<Phase> phases = {{{{0, 3}, 0.7}, {{1}, 1.0}, {{2}, 1.0}},
                                     {{{0, 1, 2}, 0.2}, {{3}, 1.0}},
                                     {{{0, 1, 2, 3}, 0.4}}};
  const testing::Settings settings = settings_of(phases, 4);
  testing::expect_near(train(settings, 10), testing::train_reference(settings, kProblem, 10));
}

// Alternating-exp-ring is another one for each number of workers per node.
TEST(DecentOptimWrapper, KnowsHowManyWorkersANodeHas) {
  const auto train_on = [](const Topology& topology, int per_node) {
    return testing::run_workers(4, [&](const Worker& world) {
      const at::Tensor x = at::tensor({1.0}, at::kDouble).requires_grad_();
      DecentOptimWrapper optimizer(sgd({x}, 0.3), topology, world, 25, per_node);
      for (int t = 0; t < 4; ++t) {
        optimizer.zero_grad();
        (x * goal_of(world->rank())).sum().backward();
        optimizer.step();
      }
      const std::vector<at::Tensor> result = testing::copies({x});
      optimizer.global_avg(false);
      return result;
    });
  };
  const std::string name = "alternating-exp-ring";
  for (const int per_node : {1, 2}) {
    testing::expect_same_bits(train_on(name, per_node),
                              train_on(make_topology(name, 4, per_node), 0));
  }
  EXPECT_FALSE(at::equal(train_on(name, 1)[0][0], train_on(name, 2)[0][0]));
}

TEST(DecentOptimWrapper, OneWorkerIsTheBareOptimizer) {
  const auto run = [&](bool wrapped) {
    std::vector<at::Tensor> x = kProblem.parameters();
    const auto adamw = std::make_shared<torch::optim::AdamW>(x, torch::optim::AdamWOptions(0.05));
    std::optional<DecentOptimWrapper> wrapper;
    if (wrapped) wrapper.emplace(adamw, "complete", make_single_worker());
    for (std::int64_t t = 1; t <= 10; ++t) {
      adamw->zero_grad();
      kProblem.loss(x, 0, t).backward();
      wrapped ? wrapper->step() : adamw->step();
    }
    return testing::copies(x);
  };
  testing::expect_same_bits({run(true)}, {run(false)});
}

// ---- parameters

TEST(DecentOptimWrapper, StartsEveryoneFromRankZeroFrozenParametersIncluded) {
  testing::run_workers(2, [&](const Worker& world) {
    const int rank = world->rank();
    const at::Tensor matrix = testing::scattered({4, 3}, rank).t().requires_grad_();
    const at::Tensor single = testing::parameter({5}, rank).detach().to(at::kFloat);
    const at::Tensor frozen = testing::scattered({2, 3}, rank).t();
    single.requires_grad_();
    DecentOptimWrapper optimizer(sgd({matrix, single, frozen}, 0.1), "ring", world);
    EXPECT_EQ(optimizer.bucket_count(), 2u);  // one for each element type
    EXPECT_TRUE(at::equal(matrix, testing::scattered({4, 3}, 0).t()));
    EXPECT_EQ(matrix.stride(0), 1) << "strides are kept";
    EXPECT_TRUE(at::equal(single, testing::scattered({5}, 0).to(at::kFloat)));
    EXPECT_TRUE(at::equal(frozen, testing::scattered({2, 3}, 0).t()));
    return 0;
  });
}

// float32 and float64 in turns, in several groups: no bucket holds both, and every parameter is
// mixed as its own type has it.
TEST(DecentOptimWrapper, MixesEveryElementTypeByItself) {
  testing::run_workers(2, [&](const Worker& world) {
    std::vector<at::Tensor> x;
    for (int p = 0; p < 4; ++p) {
      const auto type = p % 2 == 0 ? at::kFloat : at::kDouble;
      x.push_back(testing::scattered({3, 2}, p).to(type).requires_grad_());
    }
    const auto start = testing::copies(x);
    using Group = torch::optim::OptimizerParamGroup;
    const auto inner = std::make_shared<torch::optim::SGD>(
        std::vector<Group>{Group({x[0], x[1]}), Group({x[2]}), Group({x[3]})},
        torch::optim::SGDOptions(0.5));
    DecentOptimWrapper optimizer(inner, "complete", world);
    EXPECT_EQ(optimizer.bucket_count(), 4u);
    for (int t = 0; t < 2; ++t) {  // the gradient is the worker's number, 0.5 in the mean
      optimizer.zero_grad();
      for (const at::Tensor& tensor : x) (tensor * world->rank()).sum().backward();
      optimizer.step();
    }
    for (std::size_t p = 0; p < x.size(); ++p) {
      EXPECT_EQ(x[p].scalar_type(), start[p].scalar_type());
      const at::Tensor expected = start[p] - 0.25 - 0.5 * world->rank();
      const double rounding = p % 2 == 0 ? 3e-7 : 1e-15;
      EXPECT_LE((x[p] - expected).abs().max().item<double>(), rounding) << "parameter " << p;
    }
    optimizer.global_avg(false);
    return 0;
  });
}

// Gradients of zero are gradients: momentum goes on moving the parameter.
TEST(DecentOptimWrapper, ZeroGradKeepsTheMemoryOfGradientsWhereAsked) {
  const at::Tensor x = testing::parameter({3}, 1), y = testing::parameter({3}, 2);
  const auto inner = std::make_shared<torch::optim::SGD>(
      std::vector<at::Tensor>{x, y}, torch::optim::SGDOptions(0.1).momentum(0.5));
  DecentOptimWrapper optimizer(inner, "ring", make_single_worker());
  (x + y).sum().backward();
  const void* memory = y.grad().data_ptr();
  optimizer.step();
  optimizer.zero_grad(false);
  ASSERT_TRUE(y.grad().defined());
  EXPECT_EQ(y.grad().data_ptr(), memory);
  EXPECT_EQ(y.grad().abs().max().item<double>(), 0);
  const at::Tensor before = y.detach().clone();
  x.sum().backward();
  optimizer.step();
  EXPECT_LT((before - y - 0.05).abs().max().item<double>(), 1e-15);
  optimizer.zero_grad();
  EXPECT_FALSE(y.grad().defined());
}

// The optimizer knows parameters by their handles, which stay.
TEST(DecentOptimWrapper, KeepsTheStateThatTheOptimizerHas) {
  const auto run = [](bool wrapped) {
    std::vector<at::Tensor> x = kProblem.parameters();
    const auto adamw = std::make_shared<torch::optim::AdamW>(x, torch::optim::AdamWOptions(0.05));
    std::optional<DecentOptimWrapper> wrapper;
    for (std::int64_t t = 1; t <= 8; ++t) {
      if (wrapped && t == 5) wrapper.emplace(adamw, "ring", make_single_worker());
      adamw->zero_grad();
      kProblem.loss(x, 0, t).backward();
      wrapper ? wrapper->step() : adamw->step();
    }
    return testing::copies(x);
  };
  testing::expect_same_bits({run(true)}, {run(false)});
}

TEST(DecentOptimWrapper, MixesParametersWithoutGradient) {
  const auto distances = testing::run_workers(2, [&](const Worker& world) {
    const at::Tensor x = testing::parameter({3}, 1);
    const at::Tensor y = testing::parameter({3}, 2);
    DecentOptimWrapper optimizer(sgd({x, y}, 0.1), "ring", world);
    ((x + y) * (world->rank() + 1.0)).sum().backward();
    optimizer.step();
    const at::Tensor apart = x.detach().clone();
    optimizer.zero_grad();
    y.sum().backward();
    optimizer.step();
    const at::Tensor mean = testing::scattered({3}, 1) - 0.1 * 1.5;
    EXPECT_LT((x - mean).abs().max().item<double>(), 1e-15);
    EXPECT_GT((apart - mean).abs().max().item<double>(), 0.04);
    const auto distance = optimizer.global_avg(false, true);
    return distance.value();
  });
  EXPECT_NEAR(distances[0], 0, 1e-15);
}

// ---- schedulers

// What StepLR makes of the rate of every group, wrapped or not: torch's C++ StepLR lowers it one
// step later than the Python one, which takes its first step when it is made.
TEST(DecentOptimWrapper, SchedulersOfTorchGoOnWorking) {
  const auto run = [](bool wrapped) {
    const at::Tensor x = at::tensor({0.0}, at::kDouble).requires_grad_();
    const auto inner = sgd({x}, 1.0);
    std::optional<DecentOptimWrapper> wrapper;
    if (wrapped) wrapper.emplace(inner, "ring", make_single_worker());
    torch::optim::StepLR schedule(wrapped ? wrapper->optimizer() : *inner, 2, 0.5);
    std::vector<double> moved;
    for (int t = 0; t < 7; ++t) {
      const double before = x.item<double>();
      inner->zero_grad();
      x.sum().backward();
      wrapped ? wrapper->step() : inner->step();
      moved.push_back(before - x.item<double>());
      schedule.step();
    }
    return moved;
  };
  EXPECT_THAT(run(true), ::testing::ElementsAre(1, 1, 1, 0.5, 0.5, 0.25, 0.25));
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace decent
