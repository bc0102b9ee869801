#pragma once
// The smallest objects of the library with which one can make a mistake.

#include <torch/optim/sgd.h>

#include <memory>
#include <utility>
#include <vector>

#include "decent/parallel/decent_optim_wrapper.h"
#include "decent/parallel/decentralized_parameters.h"
#include "problem.h"

namespace decent::testing {

using Options = DecentralizedOptions;

inline at::Tensor small_parameter() { return scattered({3, 4}, 0).requires_grad_(); }

inline Options good_options() {
  return {.training = {.update = make_update("sgd"), .schedule = constant_lr(0.1)}};
}

// One worker's parameter in training.
struct Trained {
  explicit Trained(Options options = good_options())
      : parallel({{"w", w}, {"early", early}}, {}, make_single_worker(), std::move(options)) {}
  at::Tensor w = small_parameter();
  at::Tensor early = small_parameter();
  DecentralizedParameters parallel;
};

inline std::shared_ptr<torch::optim::SGD> plain_sgd(const std::vector<at::Tensor>& x) {
  return std::make_shared<torch::optim::SGD>(x, torch::optim::SGDOptions(0.1));
}

// A wrapper of one worker, after a step.
struct Wrapped {
  Wrapped() { step(); }
  void step() {
    x.square().sum().backward();
    optimizer.step();
  }
  at::Tensor x = small_parameter();
  std::shared_ptr<torch::optim::SGD> inner = plain_sgd({x});
  DecentOptimWrapper optimizer{inner, "ring", make_single_worker()};
};

}  // namespace decent::testing
