// Updates, mixing and norms on a GPU: the bits of the CPU.

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "../support/bucket_problem.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/gradient_norm.h"
#include "gpu_workers.h"

namespace decent {
namespace {

using testing::BucketProblem;
using testing::mixing_of;
using testing::run_gpu_workers;
using testing::same_bits;

template <typename T>
constexpr at::ScalarType kDtype = std::is_same_v<T, double> ? at::kDouble : at::kFloat;

template <typename T>
constexpr Scalar kScalar = std::is_same_v<T, double> ? Scalar::float64 : Scalar::float32;

template <typename T>
at::Tensor on_gpu(std::vector<T>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, kDtype<T>)
      .to(at::kCUDA);
}

template <typename T>
void read_back(std::vector<T>& values, const at::Tensor& tensor) {
  std::memcpy(values.data(), tensor.cpu().const_data_ptr(), values.size() * sizeof(T));
}

// The problem's gradients on the GPU, and slices that point there.
template <typename T>
std::vector<BucketSlice> move_gradients(BucketProblem<T>& problem, std::vector<at::Tensor>& held) {
  std::vector<BucketSlice> slices = problem.slices;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    held.push_back(on_gpu(problem.grads[i]));
    if (slices[i].grad != nullptr) slices[i].grad = held.back().const_data_ptr();
  }
  return slices;
}

template <typename T>
void apply_on_gpu(BucketProblem<T>& problem, const BucketUpdate& update, Mixing mixing,
                  double grad_scale) {
  const at::Tensor x = on_gpu(problem.x), received = on_gpu(problem.received);
  const std::vector<std::vector<T>*> arrays = problem.arrays_of(update);
  std::vector<at::Tensor> tensors;
  std::vector<void*> states;
  for (std::vector<T>* array : arrays)
    states.push_back(tensors.emplace_back(on_gpu(*array)).data_ptr());
  std::vector<at::Tensor> gradients;
  const std::vector<BucketSlice> slices = move_gradients(problem, gradients);
  if (mixing.received != nullptr) mixing.received = received.const_data_ptr();
  update.apply({.x = x.data_ptr(),
                .numel = x.numel(),
                .states = states,
                .scalar = kScalar<T>,
                .mixing = mixing,
                .slices = slices,
                .lr = 0.1,
                .grad_scale = grad_scale,
                .factored_work = testing::keep_direction,
                .kernels = &cuda_kernels()});
  read_back(problem.x, x);
  for (std::size_t i = 0; i < arrays.size(); ++i) read_back(*arrays[i], tensors[i]);
}

template <typename T>
BucketProblem<T> problem_with_all_kinds(std::int64_t updates) {
  BucketProblem<T> problem({1, 300'000, 4099, 33, 5000}, 7);
  for (BucketSlice& slice : problem.slices) slice.updates = updates;
  problem.slices[1].weight_decay = 0.1;
  problem.slices[3].grad = nullptr;
  return problem;
}

template <typename T>
void compare_updates() {
  for (const std::string& name : update_names()) {
    const auto update = make_update(name, {{"momentum", 0.9}, {"accum_iter", 2}});
    for (const Mixing& mixing : {Mixing{}, mixing_of(0.7, 0.3)}) {
      for (const double grad_scale : {1.0, 0.37}) {
        for (const std::int64_t number :
             {1, 2, 6}) {  // accumulating, the end of a round; radam divides
          BucketProblem<T> cpu = problem_with_all_kinds<T>(number);
          BucketProblem<T> gpu = cpu;
          cpu.apply(*update, mixing, 0.1, grad_scale);
          apply_on_gpu(gpu, *update, mixing, grad_scale);
          EXPECT_TRUE(same_bits(cpu.x, gpu.x)) << name;
          EXPECT_TRUE(same_bits(cpu.state0, gpu.state0)) << name;
          EXPECT_TRUE(same_bits(cpu.state1, gpu.state1)) << name;
          EXPECT_TRUE(same_bits(cpu.state2, gpu.state2)) << name;
        }
      }
    }
  }
}

TEST(BucketKernelsOfAGpu, UpdateWithTheBitsOfTheCpu) {
  run_gpu_workers(1, BackendRequest::automatic, [](const testing::GpuWorker&) {
    compare_updates<float>();
    compare_updates<double>();
  });
}

TEST(BucketKernelsOfAGpu, MixAWholeBucket) {
  run_gpu_workers(1, BackendRequest::automatic, [](const testing::GpuWorker&) {
    BucketProblem<float> cpu({100'000, 7});
    BucketProblem<float> gpu = cpu;
    const auto numel = static_cast<std::int64_t>(cpu.x.size());
    mix(cpu.x.data(), numel, Scalar::float32,
        {.self = 0.7, .other = 0.3, .received = cpu.received.data()});
    const at::Tensor x = on_gpu(gpu.x), received = on_gpu(gpu.received);
    mix(x.data_ptr(), numel, Scalar::float32,
        {.self = 0.7, .other = 0.3, .received = received.const_data_ptr()}, &cuda_kernels());
    read_back(gpu.x, x);
    EXPECT_TRUE(same_bits(cpu.x, gpu.x));
  });
}

TEST(BucketKernelsOfAGpu, AddUpSquares) {
  run_gpu_workers(1, BackendRequest::automatic, [](const testing::GpuWorker&) {
    BucketProblem<float> problem(std::vector<std::int64_t>(450, 3001));
    problem.slices[9].grad = nullptr;
    std::vector<at::Tensor> gradients;
    std::vector<BucketSlice> slices = move_gradients(problem, gradients);
    const auto of_gpu = [&] {
      const at::Tensor sums = at::empty({partial_sums(slices, Scalar::float32, &cuda_kernels())},
                                        at::TensorOptions().dtype(at::kDouble).device(at::kCUDA));
      add_up_squares(slices, Scalar::float32, sums.mutable_data_ptr<double>(), &cuda_kernels());
      const at::Tensor there = sums.cpu();
      const double* first = there.const_data_ptr<double>();
      return std::accumulate(first, first + there.numel(), 0.0);
    };
    const double sum = of_gpu();
    // Sums of doubles in two orders: about 2^-53 for each of the terms that follow one another.
    EXPECT_NEAR(sum / testing::sum_of_squares(problem.slices, Scalar::float32), 1, 1e-13);
    EXPECT_EQ(of_gpu(), sum);
    gradients[3].narrow(0, 5, 1).fill_(std::nan(""));
    EXPECT_FALSE(std::isfinite(of_gpu()));
  });
}

}  // namespace
}  // namespace decent
