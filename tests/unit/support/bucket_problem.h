#pragma once
// A bucket with random content: parameters of odd sizes, some longer than one thread's share, gaps
// between them, and three state arrays.

#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/optim/gradient_norm.h"

namespace decent::testing {

/// Takes the direction of a parameter's step as the state array has it.
inline void keep_direction(const BucketStep& /*step*/, const BucketSlice& /*slice*/,
                           const FactoredStep& /*how*/) {}

template <typename T>
struct BucketProblem {
  static constexpr T kGap = 123;  // fills the gaps between parameters

  explicit BucketProblem(const std::vector<std::int64_t>& sizes, unsigned seed = 1) {
    std::int64_t numel = 5;
    for (const std::int64_t size : sizes) {
      slices.push_back({.offset = numel, .numel = size});
      numel += size + 3;
    }
    const auto n = static_cast<std::size_t>(numel);
    x = received = state0 = state1 = state2 = std::vector<T>(n, kGap);
    std::mt19937 engine(seed);
    std::normal_distribution<T> normal;
    for (BucketSlice& slice : slices) {
      std::vector<T>& grad = grads.emplace_back(static_cast<std::size_t>(slice.numel));
      for (T& value : grad) value = normal(engine);
      slice.grad = grad.data();
      slice.updates = 1;
      for (auto i = static_cast<std::size_t>(slice.offset);
           i < static_cast<std::size_t>(slice.offset + slice.numel); ++i) {
        x[i] = normal(engine);
        received[i] = normal(engine);
        state0[i] = normal(engine);
        state1[i] = normal(engine) * normal(engine);
        state2[i] = normal(engine);
        state1[i] *= state1[i];  // second moments are not negative
      }
    }
  }
  BucketProblem(const BucketProblem& other) { *this = other; }
  BucketProblem& operator=(const BucketProblem& other) {
    x = other.x, received = other.received, state0 = other.state0, state1 = other.state1;
    state2 = other.state2;
    grads = other.grads;
    slices = other.slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].grad != nullptr) slices[i].grad = grads[i].data();
    }
    return *this;
  }

  /// The arrays of an update's states, in its order. Squares, which are not negative, are in
  /// state1, also those of adagrad, which has no other state.
  std::vector<std::vector<T>*> arrays_of(const BucketUpdate& update) {
    if (update.state_names() == std::vector<std::string>{"sum"}) return {&state1};
    std::vector<std::vector<T>*> arrays = {&state0, &state1, &state2};
    arrays.resize(update.state_names().size());
    return arrays;
  }
  std::vector<void*> states_of(const BucketUpdate& update) {
    std::vector<void*> states;
    for (std::vector<T>* array : arrays_of(update)) states.push_back(array->data());
    return states;
  }

  void apply(const BucketUpdate& update, Mixing mixing, double lr, double grad_scale = 1,
             const BucketKernels* kernels = nullptr, const double* device_scale = nullptr) {
    if (mixing.received != nullptr) mixing.received = received.data();
    const std::vector<void*> states = states_of(update);
    update.apply({.x = x.data(),
                  .numel = static_cast<std::int64_t>(x.size()),
                  .states = states,
                  .scalar = std::is_same_v<T, double> ? Scalar::float64 : Scalar::float32,
                  .mixing = mixing,
                  .slices = slices,
                  .lr = lr,
                  .grad_scale = grad_scale,
                  .device_scale = device_scale,
                  .factored_work = keep_direction,
                  .kernels = kernels});
  }

  std::vector<T> x, received, state0, state1, state2;
  std::vector<std::vector<T>> grads;
  std::vector<BucketSlice> slices;
};

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <typename T>
bool same_bits(const BucketProblem<T>& a, const BucketProblem<T>& b) {
  return same_bits(a.x, b.x) && same_bits(a.state0, b.state0) && same_bits(a.state1, b.state1) &&
         same_bits(a.state2, b.state2);
}

/// For gradients in host memory.
inline double sum_of_squares(std::span<const BucketSlice> slices, Scalar scalar,
                             const BucketKernels* kernels = nullptr) {
  std::vector<double> sums(static_cast<std::size_t>(partial_sums(slices, scalar, kernels)));
  add_up_squares(slices, scalar, sums.data(), kernels);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// Means "mix with the received weights"; BucketProblem::apply fills in the pointer.
inline Mixing mixing_of(double self, double other) {
  static const char marker = 0;
  return {.self = self, .other = other, .received = &marker};
}

}  // namespace decent::testing
