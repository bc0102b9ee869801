// What the CUDA kernels do, thread by thread of every block, on the CPU: the same bits as the CPU's
// own loops. (That a GPU runs them so is unit.cuda's business.)

#include <gtest/gtest.h>

#include <cmath>

#include "bucket_problem.h"
#include "decent/cuda/launch_table.h"
#include "decent/cuda/norm_table.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/gradient_norm.h"

namespace decent {
namespace {

using testing::BucketProblem;
using testing::mixing_of;
using testing::same_bits;

class EmulatedKernels : public TypedKernels<EmulatedKernels> {
 public:
  template <template <typename> class Coefficients, typename T>
  void update(const BucketStep& step, std::span<const Coefficients<T>> coefficients) const {
    cuda::for_each_launch(step, coefficients, [&](const cuda::Launch<Coefficients, T>& launch) {
      ++launches;
      for (unsigned block = 0; block < launch.first_block[launch.count]; ++block) {
        for (unsigned thread = 0; thread < cuda::kThreads; ++thread)
          cuda::run_thread(launch, block, thread);
      }
    });
  }

  template <typename T>
  void mix_as(T*, const T*, std::int64_t, const Mixing&) const {
    FAIL() << "no update mixes by itself";
  }

  template <typename T>
  double sum_as(std::span<const BucketSlice> slices) const {
    std::vector<double> sums(cuda::norm_blocks<T>(slices));
    cuda::for_each_norm_launch<T>(slices, [&](const cuda::NormLaunch<T>& launch) {
      for (unsigned block = 0; block < launch.first_block[launch.count]; ++block) {
        for (unsigned thread = 0; thread < cuda::kThreads; ++thread)
          sums.at(launch.first_sum + block) += cuda::thread_squares(launch, block, thread);
      }
    });
    double sum = 0;
    for (const double part : sums) sum += part;
    return sum;
  }

  mutable int launches = 0;
};

template <typename T>
class CudaLaunches : public ::testing::Test {
 public:
  // The same step by the CPU's loops and by the emulation.
  void expect_same_bits(const BucketUpdate& update, const BucketProblem<T>& start, Mixing mixing,
                        double grad_scale) {
    BucketProblem<T> cpu = start;
    BucketProblem<T> gpu = start;
    cpu.apply(update, mixing, 0.1, grad_scale);
    gpu.apply(update, mixing, 0.1, grad_scale, &kernels_);
    EXPECT_TRUE(same_bits(cpu.x, gpu.x));
    EXPECT_TRUE(same_bits(cpu.state0, gpu.state0));
    EXPECT_TRUE(same_bits(cpu.state1, gpu.state1));
    EXPECT_TRUE(same_bits(cpu.state2, gpu.state2));
    EXPECT_FALSE(same_bits(start.x, gpu.x));
  }

  EmulatedKernels kernels_;
};
using ElementTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaLaunches, ElementTypes);

std::vector<std::unique_ptr<BucketUpdate>> updates() {
  std::vector<std::unique_ptr<BucketUpdate>> all;
  for (const std::string& name : update_names())
    all.push_back(make_update(name, {.momentum = 0.9, .accum_iter = 2}));
  return all;
}

// Vectors of 16 bytes, single elements before a parameter's end, parameters at places that no
// vector fits, several blocks, and mixing alone.
TYPED_TEST(CudaLaunches, GiveTheBitsOfTheCpu) {
  for (const auto& update : updates()) {
    for (const Mixing& mixing : {Mixing{}, mixing_of(0.7, 0.3)}) {
      for (const double grad_scale : {1.0, 0.37}) {
        for (const std::int64_t number : {1, 2}) {  // accumulating, and the end of a round
          BucketProblem<TypeParam> problem({1, 9000, 4099, 33, 5000}, 7);
          for (BucketSlice& slice : problem.slices) slice.updates = number;
          problem.slices[1].weight_decay = 0.1;
          problem.slices[3].grad = nullptr;
          this->expect_same_bits(*update, problem, mixing, grad_scale);
        }
      }
    }
  }
}

TYPED_TEST(CudaLaunches, TakeAsManyAsTheTableNeeds) {
  const auto adamw = make_update("adamw");
  this->expect_same_bits(*adamw, BucketProblem<TypeParam>(std::vector<std::int64_t>(100, 5)),
                         mixing_of(0.5, 0.5), 1);
  using Launch = cuda::Launch<kernels::Adam, TypeParam>;
  EXPECT_EQ(this->kernels_.launches, (100 + Launch::kSlices - 1) / Launch::kSlices);
  EXPECT_GT(this->kernels_.launches, 1);
}

TEST(CudaNorm, AddsUpEveryElementOnce) {
  std::vector<std::int64_t> sizes(450, 3);
  sizes[7] = 20000;
  BucketProblem<float> problem(sizes);
  problem.slices[9].grad = nullptr;
  const EmulatedKernels kernels;
  // Sums of doubles in two orders: about 2^-53 for each of the terms that follow one another.
  EXPECT_NEAR(sum_of_squares(problem.slices, Scalar::float32, &kernels) /
                  sum_of_squares(problem.slices, Scalar::float32),
              1, 1e-13);
  EXPECT_EQ(sum_of_squares({}, Scalar::float32, &kernels), 0);
}

}  // namespace
}  // namespace decent
