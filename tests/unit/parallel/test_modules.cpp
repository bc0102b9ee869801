#include "decent/parallel/decentralized_data_parallel.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "../support/workers.h"
#include "problem.h"

namespace decent {
namespace {

using testing::scattered;

constexpr int kTwoWorkers = 2;

DecentralizedOptions options() {
  return {.topology = "ring",
          .training = {.update = make_update("sgd", {{"momentum", 0.9}}),
                       .schedule = constant_lr(0.05)}};
}

// A weight in channels_last order, batch norm, a parameter that two places use,
// and a frozen one.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    const torch::NoGradGuard no_grad;
    for (auto& entry : named_parameters()) {
      entry.value().copy_(scattered(entry.value().sizes(), 3));
    }
    conv->weight.set_data(conv->weight.contiguous(at::MemoryFormat::ChannelsLast));
    out->weight.requires_grad_(false);
    register_parameter("tied", tied);
  }

  at::Tensor forward(const at::Tensor& x) { return out(norm(conv(x)).relu().flatten(1).mul(tied)); }

  // No bias: it would have no gradient before batch norm.
  torch::nn::Conv2d conv =
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 3, 2).bias(false)));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(3));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(12, 2));
  at::Tensor tied = register_parameter("factor", scattered({12}, 8).to(at::kFloat));
};
TORCH_MODULE(Net);

at::Tensor batch(int rank, int step) {
  return scattered({4, 2, 3, 3}, 10 * rank + step).to(at::kFloat);
}

struct TrainedModule {
  NamedTensors parameters;
  NamedTensors buffers;
};

// Trains two steps and takes the average.
template <typename Module>
std::vector<TrainedModule> train_module(const std::function<Module()>& make) {
  return testing::run_workers(kTwoWorkers, [&](const testing::Worker& world) {
    DecentralizedDataParallel model(make(), world, options());
    for (int step = 1; step <= 2; ++step) {
      model.forward(batch(world->rank(), step)).square().mean().backward();
    }
    model.global_avg(false);
    TrainedModule result;
    for (const auto& [name, x] : model.named_parameters())
      result.parameters.emplace_back(name, x.detach().clone());
    for (const auto& [name, x] : model.named_buffers())
      result.buffers.emplace_back(name, x.clone());
    return result;
  });
}

TEST(Modules, HolderAndSharedPointerTrainAlike) {
  const auto holder = train_module<Net>([] { return Net(); });
  const auto pointer =
      train_module<std::shared_ptr<NetImpl>>([] { return std::make_shared<NetImpl>(); });
  ASSERT_EQ(holder[0].parameters.size(), 6U);  // the tied one once
  for (std::size_t p = 0; p < holder[0].parameters.size(); ++p) {
    const auto& [name, x] = holder[0].parameters[p];
    EXPECT_TRUE(at::equal(x, holder[1].parameters[p].second)) << name;
    EXPECT_TRUE(at::equal(x, pointer[0].parameters[p].second)) << name;
    const bool frozen = name == "out.weight";
    EXPECT_EQ(at::equal(x, NetImpl().named_parameters()[name]), frozen) << name;
  }
  for (std::size_t b = 0; b < holder[0].buffers.size(); ++b) {
    EXPECT_TRUE(at::equal(holder[0].buffers[b].second, pointer[1].buffers[b].second));
  }
}

TEST(Modules, KeepStridesAndStayWhereTheirHoldersSeeThem) {
  const Net net;
  DecentralizedDataParallel model(net, make_single_worker(), options());
  EXPECT_TRUE(net->conv->weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor before = net->conv->weight.detach().clone();
  model.forward(batch(0, 1)).sum().backward();
  EXPECT_FALSE(at::equal(net->conv->weight, before));
  EXPECT_TRUE(net->conv->weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(model.parameters().size(), 6U);
  EXPECT_TRUE(model.parameters()[0].is_same(net->tied));
  EXPECT_EQ(model.module().get(), net.get());
  EXPECT_EQ(model.parameter_count(), 12 + 24 + 3 + 3 + 2);
}

TEST(Modules, NameAllThatATrainingGoesOnFrom) {
  const Net net;
  DecentralizedDataParallel model(net, make_single_worker(), options());
  std::vector<std::string> names;
  for (const auto& entry : model.training_state()) names.push_back(entry.first);
  for (const char* name :
       {"model.factor", "optimizer.factor.momentum_buffer", "optimizer.factor.step",
        "model.out.weight", "buffer.norm.running_mean", "buffer.norm.num_batches_tracked"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("optimizer.out.weight.step")));
  const DecentralizedParameters& base = model;
  EXPECT_EQ(base.training_state().size(), names.size());
}

TEST(Modules, PassTrainAndEvalOn) {
  const Net net;
  DecentralizedDataParallel model(net, make_single_worker(), options());
  model.eval();
  EXPECT_FALSE(net->norm->is_training());
  model.train();
  EXPECT_TRUE(net->norm->is_training());
  model.train(false);
  EXPECT_FALSE(net->is_training());
}

// Buffers that forward writes: batch norm's in place, and one that TorchScript puts another tensor
// in the place of.
torch::jit::Module counting_module() {
  torch::jit::Module module("counting");
  module.register_parameter("w", scattered({3, 2}, 1).requires_grad_(), /*is_buffer=*/false);
  module.register_buffer("seen", at::zeros({}, at::kDouble));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
    def forward(self, x):
        if self.training:
            self.seen = self.seen + x.sum()
        return x.matmul(self.w.t())
  )");
  return module;
}

TEST(Modules, OfTorchScriptTrainAndAverageReplacedBuffers) {
  const auto seen = testing::run_workers(kTwoWorkers, [](const testing::Worker& world) {
    DecentralizedDataParallel model(counting_module(), world, options());
    const double own = world->rank() + 1;
    for (int step = 0; step < 3; ++step) {
      const at::Tensor x = at::full({1, 2}, own, at::kDouble);
      model.forward(std::vector<c10::IValue>{x}).toTensor().sum().backward();
    }
    const auto buffer = [&] { return model.module().attr("seen").toTensor().item<double>(); };
    EXPECT_EQ(buffer(), 6 * own);
    model.global_avg(true);
    EXPECT_EQ(buffer(), 9);
    model.eval();
    model.forward(std::vector<c10::IValue>{at::ones({1, 2}, at::kDouble)});
    model.train();
    model.revert_global_avg();
    EXPECT_EQ(buffer(), 6 * own);
    model.global_avg(false);
    EXPECT_EQ(buffer(), 9);
    return model.module().attr("w").toTensor().detach().clone();
  });
  EXPECT_TRUE(at::equal(seen[0], seen[1]));
  EXPECT_FALSE(at::equal(seen[0], scattered({3, 2}, 1)));
}

TEST(Modules, RefuseABufferOfAnotherShape) {
  torch::jit::Module module = counting_module();
  DecentralizedDataParallel model(module, make_single_worker(), options());
  module.setattr("seen", at::zeros({2}, at::kDouble));
  try {
    model.global_avg();
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the buffer 'seen' from float64[]"));
  }
}

}  // namespace
}  // namespace decent
