// What DecentOptimWrapper refuses, and that the message says what would be right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include "decent/parallel/decent_optim_wrapper.h"
#include "training.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tensors = std::vector<at::Tensor>;

std::shared_ptr<torch::optim::SGD> sgd(const Tensors& x) {
  return std::make_shared<torch::optim::SGD>(x, torch::optim::SGDOptions(0.1));
}

void wrap(std::shared_ptr<torch::optim::Optimizer> optimizer, double bucket_cap_mb = 25,
          Topology topology = "ring", int local_world_size = 0) {
  DecentOptimWrapper(std::move(optimizer), std::move(topology), make_single_worker(), bucket_cap_mb,
                     local_world_size);
}

void expect_refused(const std::function<void()>& act, const std::string& reason) {
  EXPECT_THAT(act, ThrowsMessage<UserError>(HasSubstr(reason)));
}

const auto parameter = [](at::ScalarType type = at::kDouble) {
  return testing::scattered({3, 4}, 0).to(type).requires_grad_();
};

TEST(DecentOptimWrapperMisuse, LbfgsIsRefusedWithTheReason) {
  const auto lbfgs = [] { wrap(std::make_shared<torch::optim::LBFGS>(Tensors{parameter()})); };
  expect_refused(lbfgs, "evaluates its closure several times within a step");
  expect_refused(lbfgs, "Wrap an optimizer with one gradient per step: SGD");
}

TEST(DecentOptimWrapperMisuse, ArgumentsThatMakeNoSense) {
  const at::Tensor x = parameter();
  expect_refused([] { wrap(nullptr); }, "the optimizer is null");
  expect_refused([&] { DecentOptimWrapper(sgd({x}), "ring", nullptr); },
                 "the communicator is null; make_single_worker()");
  expect_refused([&] { wrap(sgd({x}), 0); }, "the bucket size is 0.000000 MiB: it must be greater");
  expect_refused([&] { wrap(sgd({x}), -1); }, "the bucket size is -1.000000 MiB");
  expect_refused([&] { wrap(sgd({x}), std::nan("")); }, "it must be greater than 0");
}

TEST(DecentOptimWrapperMisuse, TopologiesThatDoNotFit) {
  const at::Tensor x = parameter();
  const void* memory = x.data_ptr();
  const auto with = [&](Topology topology, int local_world_size = 0) {
    return [=] { wrap(sgd({x}), 25, topology, local_world_size); };
  };
  expect_refused(with("rong"), "unknown topology 'rong'; valid: complete, ring");
  expect_refused(with(std::vector<Phase>{}), "a topology needs at least one phase");
  expect_refused(with(make_topology("ring", 2, 2)), "rank 1 does not exist: there is 1 worker");
  expect_refused(with(std::vector<Phase>{{}}), "topology phase 0: rank 0 is in no edge");
  expect_refused(with("ring", -1), "local_world_size is -1: it must be >= 1, or 0");
  EXPECT_EQ(x.data_ptr(), memory) << "nothing was touched";
}

TEST(DecentOptimWrapperMisuse, ParametersThatCannotBeTrainedInPlace) {
  const at::Tensor x = parameter();
  expect_refused([&] { wrap(sgd({x.detach()})); }, "none requires a gradient");
  expect_refused([&] { wrap(sgd(Tensors{})); }, "no parameter to train");
  expect_refused(
      [&] {
        wrap(sgd({x, x}));
      },
      "param_groups[0].params[1] twice, and would update it twice");
  expect_refused(
      [&] {
        wrap(sgd({x, parameter(at::kHalf)}));
      },
      "'param_groups[0].params[1]' is float16: float32 and float64 can be trained");
  expect_refused([&] { wrap(sgd({x, x.detach().view({12}).requires_grad_()})); }, "share memory");
}

// One worker that has done a step.
struct Single {
  at::Tensor x = parameter();
  std::shared_ptr<torch::optim::SGD> inner = sgd({x});
  DecentOptimWrapper optimizer{inner, "ring", make_single_worker()};

  Single() { step(); }
  void step() {
    optimizer.zero_grad();
    x.square().sum().backward();
    optimizer.step();
  }
  void expect_refused_step(const std::string& reason) {
    EXPECT_THAT([&] { step(); }, ThrowsMessage<std::logic_error>(HasSubstr(reason)));
    EXPECT_EQ(optimizer.steps(), 1);
  }
};

TEST(DecentOptimWrapperMisuse, RevertNeedsAnAverage) {
  Single s;
  const auto revert = [&] { s.optimizer.revert_global_avg(); };
  const auto refusal = ThrowsMessage<std::logic_error>(HasSubstr("global_avg() was not called"));
  EXPECT_THAT(revert, refusal);
  s.optimizer.global_avg(false);
  EXPECT_THAT(revert, refusal);
  s.optimizer.global_avg();
  EXPECT_NO_THROW(revert());
  EXPECT_THAT(revert, refusal);
}

TEST(DecentOptimWrapperMisuse, TheAverageIsNotTrained) {
  Single s;
  s.optimizer.global_avg();
  s.expect_refused_step("call revert_global_avg() first, or global_avg(false)");
  EXPECT_THAT([&] { s.optimizer.step([]() -> at::Tensor { throw std::runtime_error("called"); }); },
              ThrowsMessage<std::logic_error>(HasSubstr("step() on the global average")));
  s.optimizer.revert_global_avg();
  EXPECT_NO_THROW(s.step());
}

TEST(DecentOptimWrapperMisuse, ParametersThatCameLater) {
  Single added;
  added.inner->add_param_group(torch::optim::OptimizerParamGroup({parameter()}));
  added.expect_refused_step("param_groups[1].params[0] was added or unfrozen");
  EXPECT_THAT([&] { added.optimizer.global_avg(); },
              ThrowsMessage<std::logic_error>(HasSubstr("is not averaged")));

  const at::Tensor x = parameter(), frozen = parameter().detach();
  DecentOptimWrapper optimizer(sgd({x, frozen}), "ring", make_single_worker());
  frozen.requires_grad_();
  EXPECT_THAT([&] { optimizer.step(); },
              ThrowsMessage<std::logic_error>(HasSubstr("make a new one after global_avg(false)")));
}

TEST(DecentOptimWrapperMisuse, ParametersThatMovedAway) {
  Single s;
  s.x.set_data(s.x.detach().clone());
  s.expect_refused_step("got other memory after DecentOptimWrapper was made");
  EXPECT_THAT([&] { s.optimizer.global_avg(); },
              ThrowsMessage<std::logic_error>(HasSubstr("tensor.copy_")));
}

// All workers make the same mistake, so that none waits for another.
void expect_write_refused(
    const std::function<std::shared_ptr<torch::optim::Optimizer>(const at::Tensor&)>& make,
    const std::function<void(torch::optim::Optimizer&, const at::Tensor&)>& write) {
  testing::run_workers(2, [&](const testing::Worker& world) {
    const at::Tensor x = parameter();
    const auto inner = make(x);
    DecentOptimWrapper optimizer(inner, "ring", world);
    x.square().sum().backward();
    optimizer.step();
    write(*inner, x);
    const auto refusal =
        ThrowsMessage<std::logic_error>(HasSubstr("through DecentOptimWrapper alone"));
    EXPECT_THAT([&] { optimizer.step(); }, refusal);
    EXPECT_THAT([&] { optimizer.global_avg(); }, refusal);
    optimizer.global_avg(false);
    EXPECT_NO_THROW(optimizer.step());
    optimizer.global_avg(false);
    return 0;
  });
}

TEST(DecentOptimWrapperMisuse, WeightsWrittenWhileNeighboursReadThem) {
  const auto step = [](torch::optim::Optimizer& inner, const at::Tensor&) { inner.step(); };
  const auto make_sgd = [](const at::Tensor& x) { return sgd({x}); };  // writes through .data()
  expect_write_refused(make_sgd, step);
  expect_write_refused(
      [](const at::Tensor& x) { return std::make_shared<torch::optim::AdamW>(Tensors{x}); }, step);
  expect_write_refused(make_sgd, [](torch::optim::Optimizer&, const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    x.mul_(1.0);  // the same values, but nobody can know
  });
}

TEST(DecentOptimWrapperMisuse, AClosureThatWritesWeights) {
  testing::run_workers(2, [&](const testing::Worker& world) {
    const at::Tensor x = parameter();
    DecentOptimWrapper optimizer(sgd({x}), "ring", world);
    const auto closure = [&] {
      const at::NoGradGuard no_grad;
      x.mul_(0.5);
      return at::Tensor();
    };
    EXPECT_NO_THROW(optimizer.step(closure)) << "nobody reads before the first exchange";
    EXPECT_THAT([&] { optimizer.step(closure); },
                ThrowsMessage<std::logic_error>(HasSubstr("was written after the last step()")));
    optimizer.global_avg(false);
    return 0;
  });
}

// The average is the user's to write: reverting brings back what is sent and mixed.
TEST(DecentOptimWrapperMisuse, WritingToTheAverageIsNone) {
  testing::run_workers(2, [&](const testing::Worker& world) {
    const at::Tensor x = parameter();
    DecentOptimWrapper optimizer(sgd({x}), "ring", world);
    x.square().sum().backward();
    optimizer.step();
    const at::Tensor own = x.detach().clone();
    optimizer.global_avg();
    {
      const at::NoGradGuard no_grad;
      x.zero_();
    }
    optimizer.revert_global_avg();
    EXPECT_TRUE(at::equal(x, own));
    EXPECT_NO_THROW(optimizer.step());
    optimizer.global_avg(false);
    return 0;
  });
}

// What a graph saved is not what the weights are any more.
TEST(DecentOptimWrapperMisuse, GoingThroughAnOldGraph) {
  const auto changes = [](const std::function<void(DecentOptimWrapper&)>& change) {
    Single s;
    const at::Tensor loss = s.x.square().sum();
    change(s.optimizer);
    EXPECT_THAT([&] { loss.backward(); },
                ThrowsMessage<std::exception>(HasSubstr("modified by an inplace operation")));
  };
  changes([](DecentOptimWrapper& optimizer) { optimizer.step(); });
  changes([](DecentOptimWrapper& optimizer) { optimizer.global_avg(); });
  changes([](DecentOptimWrapper& optimizer) { optimizer.global_avg(false); });
}

}  // namespace
}  // namespace decent
