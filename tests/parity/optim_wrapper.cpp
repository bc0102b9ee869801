// Trains the MLP of models.py with DecentOptimWrapper as optim_wrapper.py, its twin, does with the
// Python package. Started by test_optim_wrapper.py, once for each worker, with a launcher's
// variables:
//
//     parity_optim_wrapper FOLDER CASE...
//
// CASE is <optimizer>-<topology>. Reads FOLDER/input.safetensors; every worker writes
// FOLDER/<case>.cpp.<rank>.safetensors with its losses, step by step, and all that its parameters
// were, one moment after another.

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "decent/comm/distributed.h"
#include "decent/core/error.h"
#include "decent/parallel/decent_optim_wrapper.h"
#include "tensor_files.h"

namespace {

using Tensors = std::vector<at::Tensor>;
using Optimizer = std::shared_ptr<torch::optim::Optimizer>;
using decent::parity::Named;

// All of these as in optim_wrapper.py, which says why.
constexpr std::int64_t kSteps = 24;
constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kAverageAndRevertAfter = 8;
constexpr std::int64_t kAverageForGoodAfter = 16;
constexpr double kBucketMb = 0.001;
constexpr double kWeightDecay = 0.05;
const std::vector<std::string> kNames = {"fc1.weight",  "fc1.bias", "norm1.weight", "norm1.bias",
                                         "fc2.weight",  "fc2.bias", "norm2.weight", "norm2.bias",
                                         "head.weight", "head.bias"};

// ---- model and optimizers

at::Tensor loss_of(const Tensors& p, const at::Tensor& x, const at::Tensor& y) {
  const auto layer = [&](const at::Tensor& input, std::size_t first) {
    const at::Tensor hidden = at::linear(input, p[first], p[first + 1]);
    return at::gelu(at::layer_norm(hidden, {hidden.size(-1)}, p[first + 2], p[first + 3]));
  };
  return at::cross_entropy_loss(at::linear(layer(layer(x, 0), 4), p[8], p[9]), y);
}

// Two groups: matrices decay, vectors do not.
template <typename Optim, typename Options>
Optimizer with_groups(const Tensors& parameters, Options options) {
  Tensors matrices, vectors;
  for (const at::Tensor& p : parameters) (p.dim() >= 2 ? matrices : vectors).push_back(p);
  using Group = torch::optim::OptimizerParamGroup;
  options.weight_decay(kWeightDecay);
  std::vector<Group> groups = {Group(matrices, std::make_unique<Options>(options))};
  options.weight_decay(0);
  groups.emplace_back(vectors, std::make_unique<Options>(options));
  return std::make_shared<Optim>(groups, options);
}

Optimizer make_optimizer(std::string_view name, const Tensors& x) {
  using namespace torch::optim;
  if (name == "sgd") return with_groups<SGD>(x, SGDOptions(0.05).momentum(0.9));
  if (name == "adam") return with_groups<Adam>(x, AdamOptions(3e-3).betas({0.8, 0.99}));
  if (name == "adamw") return with_groups<AdamW>(x, AdamWOptions(3e-3));
  if (name == "rmsprop")
    return with_groups<RMSprop>(x, RMSpropOptions(1e-3).alpha(0.95).momentum(0.5));
  if (name == "adagrad") return with_groups<Adagrad>(x, AdagradOptions(2e-2).lr_decay(0.01));
  throw decent::UserError("unknown optimizer '" + std::string(name) + "'");
}

// ---- training

struct History {
  const Tensors& parameters;
  Tensors losses = {};
  std::vector<Tensors> moments = {};  // by parameter

  void note() {
    moments.resize(parameters.size());
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      moments[p].push_back(parameters[p].detach().clone());
    }
  }
  Named tensors() const {
    Named result = {{"losses", at::stack(losses)}};
    for (std::size_t p = 0; p < moments.size(); ++p) result[kNames[p]] = at::stack(moments[p]);
    return result;
  }
};

// Every worker begins elsewhere: rank 0's values must become everyone's.
Tensors parameters_of(const Named& input, int rank) {
  Tensors result;
  for (const std::string& name : kNames) {
    result.push_back(input.at("start/" + name).add(rank).requires_grad_());
  }
  return result;
}

void average(decent::DecentOptimWrapper& optimizer, std::int64_t step, History& history) {
  if (step == kAverageAndRevertAfter) {
    optimizer.global_avg();
    history.note();
    optimizer.revert_global_avg();
    history.note();
  } else if (step == kAverageForGoodAfter) {
    optimizer.global_avg(false);
    history.note();
  }
}

Named train(const std::string& name, const Named& input, const decent::Distributed& workers) {
  const std::size_t dash = name.find('-');
  const Tensors parameters = parameters_of(input, workers.rank());
  const Optimizer inner = make_optimizer(name.substr(0, dash), parameters);
  decent::DecentOptimWrapper optimizer(inner, name.substr(dash + 1), workers.communicator(),
                                       kBucketMb);
  torch::optim::StepLR schedule(optimizer.optimizer(), 8, 0.5);
  schedule.step();  // the Python one takes its first step when it is made
  History history{parameters};
  for (std::int64_t t = 1; t <= kSteps; ++t) {
    const std::int64_t first = ((t - 1) * workers.world_size() + workers.rank()) * kBatch;
    const at::Tensor loss = loss_of(parameters, input.at("x").narrow(0, first, kBatch),
                                    input.at("y").narrow(0, first, kBatch));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    schedule.step();
    history.losses.push_back(loss.detach());
    history.note();
    average(optimizer, t, history);
  }
  optimizer.global_avg(false);
  return history.tensors();
}

void run(const std::filesystem::path& folder, const std::vector<std::string>& cases) {
  const Named input = decent::parity::read_tensors(folder / "input.safetensors");
  const decent::Distributed workers = decent::initialize_distributed();
  for (const std::string& name : cases) {
    const std::string file = name + ".cpp." + std::to_string(workers.rank()) + ".safetensors";
    decent::parity::write_tensors(folder / file, train(name, input, workers));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: parity_optim_wrapper FOLDER CASE...\n";
    return 2;
  }
  try {
    run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
