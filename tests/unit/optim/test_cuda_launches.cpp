// What the CUDA kernels do, thread by thread of every block, on the CPU: the same bits as the CPU's
// own loops. (That a GPU runs them so is unit.cuda's business.)

#include <gtest/gtest.h>

#include <cmath>

#include "../support/bucket_problem.h"
#include "decent/cuda/launch_table.h"
#include "decent/cuda/norm_table.h"
#include "decent/optim/bucket_kernels.h"

namespace decent {
namespace {

using testing::BucketProblem;
using testing::mixing_of;
using testing::same_bits;
using testing::sum_of_squares;

struct EmulatedGpu {
  inline static int launches = 0;

  template <class Rule, typename T>
  static void update(const BucketStep& step,
                     std::span<const rules::Coefficients<Rule, T>> coefficients) {
    cuda::for_each_launch<Rule, T>(step, coefficients, [](const cuda::Launch<Rule, T>& launch) {
      ++launches;
      for (unsigned block = 0; block < launch.first_block[launch.count]; ++block) {
        for (unsigned thread = 0; thread < cuda::kThreads; ++thread)
          cuda::run_thread(launch, block, thread);
      }
    });
  }

  template <typename T>
  static void mix(T*, const T*, T, T, std::int64_t) {
    FAIL() << "no update mixes by itself";
  }

  static void in_pieces(std::int64_t, const PieceWork&) { FAIL() << "no update mixes by itself"; }

  template <typename T>
  static std::int64_t partial_sums(std::span<const BucketSlice> slices) {
    return cuda::norm_blocks<T>(slices);
  }

  template <typename T>
  static void add_up_squares(std::span<const BucketSlice> slices, double* sums) {
    cuda::for_each_norm_launch<T>(slices, sums, [](const cuda::NormLaunch<T>& launch) {
      for (unsigned block = 0; block < launch.first_block[launch.count]; ++block) {
        launch.sums[block] = 0;
        for (unsigned thread = 0; thread < cuda::kThreads; ++thread)
          launch.sums[block] += cuda::thread_squares(launch, block, thread);
      }
    });
  }

  static void clip(const Clipping& clipping) { clipping.run(); }
};

const BucketKernels& emulated_kernels() {
  static const auto kernels = BucketKernels::made_of<EmulatedGpu>();
  return kernels;
}

template <typename T>
class CudaLaunches : public ::testing::Test {
 public:
  // The same step by the CPU's loops and by the emulation.
  void expect_same_bits(const BucketUpdate& update, const BucketProblem<T>& start, Mixing mixing,
                        double grad_scale) {
    BucketProblem<T> cpu = start;
    BucketProblem<T> gpu = start;
    cpu.apply(update, mixing, 0.1, grad_scale);
    gpu.apply(update, mixing, 0.1, grad_scale, &emulated_kernels());
    EXPECT_TRUE(same_bits(cpu.x, gpu.x));
    EXPECT_TRUE(same_bits(cpu.state0, gpu.state0));
    EXPECT_TRUE(same_bits(cpu.state1, gpu.state1));
    EXPECT_TRUE(same_bits(cpu.state2, gpu.state2));
    EXPECT_FALSE(same_bits(start.x, gpu.x));
  }
};
using ElementTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaLaunches, ElementTypes);

std::vector<std::unique_ptr<BucketUpdate>> updates() {
  std::vector<std::unique_ptr<BucketUpdate>> all;
  for (const std::string& name : update_names())
    all.push_back(make_update(name, {{"momentum", 0.9}, {"accum_iter", 2}}));
  return all;
}

// Vectors of 16 bytes, single elements before a parameter's end, parameters at places that no
// vector fits, several blocks, and mixing alone.
TYPED_TEST(CudaLaunches, GiveTheBitsOfTheCpu) {
  for (const auto& update : updates()) {
    for (const Mixing& mixing : {Mixing{}, mixing_of(0.7, 0.3)}) {
      for (const double grad_scale : {1.0, 0.37}) {
        for (const std::int64_t number :
             {1, 2, 6}) {  // accumulating, the end of a round; radam divides
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

// As a factor in the arrays' memory has it: together with grad_scale, or nothing at all.
TYPED_TEST(CudaLaunches, TakeAFactorFromTheMemoryOfTheDevice) {
  const double half = 0.5, none = std::nan("");
  for (const auto& update : updates()) {
    const BucketProblem<TypeParam> start({1, 9000, 4099}, 7);
    for (const BucketKernels* kernels : {&emulated_kernels(), &cpu_kernels()}) {
      BucketProblem<TypeParam> given = start, there = start, held = start;
      given.apply(*update, mixing_of(0.7, 0.3), 0.1, 0.37 * half, kernels);
      there.apply(*update, mixing_of(0.7, 0.3), 0.1, 0.37, kernels, &half);
      held.apply(*update, mixing_of(0.7, 0.3), 0.1, 0.37, kernels, &none);
      EXPECT_TRUE(same_bits(given, there));
      EXPECT_TRUE(same_bits(held, start));
    }
  }
}

TYPED_TEST(CudaLaunches, TakeAsManyAsTheTableNeeds) {
  const auto adamw = make_update("adamw");
  const int before = EmulatedGpu::launches;
  this->expect_same_bits(*adamw, BucketProblem<TypeParam>(std::vector<std::int64_t>(100, 5)),
                         mixing_of(0.5, 0.5), 1);
  using Launch = cuda::Launch<rules::Adam, TypeParam>;
  const int launches = EmulatedGpu::launches - before;
  EXPECT_EQ(launches, (100 + Launch::kMaxSlices - 1) / Launch::kMaxSlices);
  EXPECT_GT(launches, 1);
}

TEST(CudaNorm, AddsUpEveryElementOnce) {
  std::vector<std::int64_t> sizes(450, 3);
  sizes[7] = 20000;
  BucketProblem<float> problem(sizes);
  problem.slices[9].grad = nullptr;
  const BucketKernels& kernels = emulated_kernels();
  // Sums of doubles in two orders: about 2^-53 for each of the terms that follow one another.
  EXPECT_NEAR(sum_of_squares(problem.slices, Scalar::float32, &kernels) /
                  sum_of_squares(problem.slices, Scalar::float32),
              1, 1e-13);
  EXPECT_EQ(sum_of_squares({}, Scalar::float32, &kernels), 0);
}

}  // namespace
}  // namespace decent
