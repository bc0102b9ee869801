#pragma once
// Small models and data for the tests of training, float64 so that comparisons can be tight:
// functions of parameters, worker and step alone.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decent/parallel/named_tensors.h"

namespace decent::testing {

/// The loss of worker `rank` in step t = 1, 2, ..
using Loss = std::function<at::Tensor(const std::vector<at::Tensor>& x, int rank, std::int64_t t)>;

/// Values in (-1, 1) that look random, the same for the same arguments.
inline at::Tensor scattered(at::IntArrayRef sizes, double seed) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(12.9898 * static_cast<double>(i + 1) + 78.233 * (seed + 1));
  }
  return at::tensor(values, at::kDouble).view(sizes);
}

inline at::Tensor parameter(at::IntArrayRef sizes, double seed) {
  return scattered(sizes, seed).requires_grad_();
}

struct Problem {
  std::vector<std::vector<std::int64_t>> shapes;
  Loss loss;

  /// Fresh parameters; another `seed`, other values.
  std::vector<at::Tensor> parameters(double seed = 0) const {
    std::vector<at::Tensor> result;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      result.push_back(parameter(shapes[i], seed + static_cast<double>(i)));
    }
    return result;
  }
};

inline NamedTensors named(const std::vector<at::Tensor>& tensors) {
  NamedTensors result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result.emplace_back("p" + std::to_string(i), tensors[i]);
  }
  return result;
}

inline double seed_of(int rank, std::int64_t t) { return 1000 * rank + static_cast<double>(t); }

/// tanh(x W0' + b0) W1' + b1, times a scalar, against targets: shapes of 2, 1 and 0 dimensions, one
/// empty.
inline Problem perceptron() {
  return {{{6, 5}, {6}, {3, 6}, {3}, {}, {0, 4}},
          [](const std::vector<at::Tensor>& x, int rank, std::int64_t t) {
            const at::Tensor input = scattered({8, 5}, seed_of(rank, t));
            const at::Tensor target = scattered({8, 3}, 0.5 + seed_of(rank, t));
            const at::Tensor hidden = at::linear(input, x[0], x[1]).tanh();
            const at::Tensor output = at::linear(hidden, x[2], x[3]) * x[4];
            return at::mse_loss(output, target) + x[5].sum();
          }};
}

inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.detach().clone());
  return result;
}

}  // namespace decent::testing
