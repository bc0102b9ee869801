// Exchanging a slice of each bucket in a step, by every method that the whole bucket can be
// exchanged by: what is mixed, with whom, and what is left alone.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "../support/workers.h"
#include "decent/codec/slices.h"
#include "decent/optim/bucket_update.h"
#include "decent/parallel/exchange/methods.h"

namespace decent {
namespace {

constexpr std::int64_t kSlices = 3;
constexpr std::int64_t kNumel = 150;  // 5 blocks of 32, which 3 does not divide
constexpr double kGamma = 0.6;

// Pairs and a worker alone; all four.
const std::vector<Phase> kPhases = {{{{0, 3}, 0.7}, {{1}, 1.0}, {{2}, 1.0}}, {{{0, 1, 2, 3}, 0.4}}};

// Small integers: the same in bfloat16.
at::Tensor weights_of(int rank) {
  return at::arange(kNumel, at::kDouble).remainder(11).mul(rank + 1).add(rank * rank);
}

const Edge& edge_after(std::int64_t step, int rank) {
  return edge_of(kPhases[static_cast<std::size_t>((step - 1) / kSlices % 2)], rank);
}

at::Tensor mean_of_others(const Edge& edge, int rank) {
  at::Tensor sum = at::zeros({kNumel}, at::kDouble);
  for (const int other : edge.ranks) {
    if (other != rank) sum += weights_of(other);
  }
  return sum / static_cast<double>(edge.ranks.size() - 1);
}

// x_i, with `values` on the slice that is exchanged after `step`.
at::Tensor with_slice(std::int64_t step, int rank, const at::Tensor& values) {
  const Range slice = slice_after_step(kNumel, step, kSlices);
  at::Tensor x = weights_of(rank);
  x.slice(0, slice.begin, slice.end).copy_(values.slice(0, slice.begin, slice.end));
  return x;
}

// Some five roundings of float64 of values of up to 60.
bool near(const at::Tensor& actual, const at::Tensor& expected) {
  return (actual - expected).abs().max().item<double>() <= 1e-13;
}

class Slices : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Exchange> make(const testing::Worker& world, const at::Tensor& x) {
    auto exchange = exchange_method(GetParam())
                        .make({.communicator = world,
                               .phases = kPhases,
                               .buckets = {x},
                               .options = {.slices = kSlices}});
    exchange->set_gamma(kGamma);
    return exchange;
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, Slices, ::testing::Values("fp32", "bf16"),
                         [](const auto& method) { return method.param; });

TEST_P(Slices, MixTheirPartOnlyAndEachMeetsEveryone) {
  testing::run_workers(4, [](const testing::Worker& world) {
    const int rank = world->rank();
    const at::Tensor x = weights_of(rank);
    const auto exchange = make(world, x);
    for (std::int64_t step = 1; step <= 4 * kSlices; ++step) {
      const Edge& edge = edge_after(step, rank);
      x.copy_(weights_of(rank));
      exchange->start(0, step);
      mix(x.data_ptr(), kNumel, Scalar::float64, exchange->wait(0));
      if (edge.ranks.size() == 1) {
        EXPECT_TRUE(at::equal(x, weights_of(rank)));
        continue;
      }
      const at::Tensor others = mean_of_others(edge, rank) * (1 - edge.self_weight);
      const at::Tensor mean = weights_of(rank) * edge.self_weight + others;
      const at::Tensor z = weights_of(rank) * (1 - kGamma) + mean * kGamma;
      EXPECT_TRUE(near(x, with_slice(step, rank, z))) << "after step " << step;
    }
    return testing::Nothing();
  });
}

TEST_P(Slices, AreShownAmongTheOwnWeights) {
  testing::run_workers(4, [](const testing::Worker& world) {
    const int rank = world->rank();
    const auto exchange = make(world, weights_of(rank));
    for (std::int64_t step = kSlices + 1; step <= 2 * kSlices; ++step) {
      exchange->start(0, step);
      const auto received = exchange->peek(0);
      if (!received) ADD_FAILURE() << "nothing was received";
      const at::Tensor others = mean_of_others(edge_after(step, rank), rank);
      EXPECT_TRUE(near(received->others, with_slice(step, rank, others)));
      exchange->drop();
    }
    return testing::Nothing();
  });
}

}  // namespace
}  // namespace decent
