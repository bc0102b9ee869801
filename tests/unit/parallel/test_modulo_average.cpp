// Many mixes of a modulo exchange in a row: the average of all copies stays what it was, but for
// the rounding of each copy's own sum.

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "../comm/workers.h"
#include "decent/optim/mix.h"
#include "decent/parallel/device_kernels.h"
#include "decent/parallel/exchange/methods.h"
#include "problem.h"

namespace decent {
namespace {

// Enough for every slice, phase and 8-bit part to come several times; DECENT_MIXES=10000 takes
// longer.
std::int64_t mixes() {
  const char* const given = std::getenv("DECENT_MIXES");
  return given != nullptr ? std::stoll(given) : 1000;
}

struct Copy {
  at::Tensor start, end;   // [numel] float64
  at::Tensor limit;        // [numel] float64: of the rounding errors of all mixes
  std::int64_t moved = 0;  // elements that the last tenth of the mixes changed
};

// 11 blocks of 32 elements, the last one not whole. Half of the copies are near, within the range
// of the exchange, the others so far apart that every difference wraps.
at::Tensor weights(int rank, at::ScalarType type) {
  const at::Tensor distance = at::zeros({340}, at::kDouble);
  distance.slice(0, 0, 170).fill_(0.02);
  distance.slice(0, 170).fill_(2);
  return (testing::scattered({340}, 1) + distance * testing::scattered({340}, 2 + rank)).to(type);
}

// z = x + c n, n a whole number, c the same for all members of an edge: the sum is rounded once, the
// product once. c is far more than an ulp of x, so that z = x means n = 0, which has no error.
at::Tensor rounding_errors(const at::Tensor& x, const at::Tensor& z) {
  const double unit = x.scalar_type() == at::kFloat ? std::numeric_limits<float>::epsilon()
                                                    : std::numeric_limits<double>::epsilon();
  return (z.abs() + (z - x).abs()).to(at::kDouble) * (1.001 * unit / 2) * (x != z).to(at::kDouble);
}

Copy mix_often(const testing::Worker& world, const std::vector<Phase>& phases, double gamma,
               at::ScalarType type) {
  const at::Tensor x = weights(world->rank(), type);
  const auto exchange = exchange_method("modulo2").make({.world = world,
                                                         .membership = everyone(world->size()),
                                                         .phases = phases,
                                                         .buckets = {x},
                                                         .slices = 3,
                                                         .gamma = gamma,
                                                         .schedule = constant_lr(0.01)});
  Copy copy{.start = x.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true),
            .limit = at::zeros({x.numel()}, at::kDouble)};
  for (std::int64_t t = 1; t <= mixes(); ++t) {
    exchange->start(0, t);
    const at::Tensor before = x.clone();
    mix(x.data_ptr(), x.numel(), scalar_of(x), exchange->wait(0, gamma), kernels_of(x));
    copy.limit += rounding_errors(before, x);
    if (t > mixes() - mixes() / 10) copy.moved += (before != x).sum().item<std::int64_t>();
  }
  copy.end = x.to(at::kDouble);
  return copy;
}

void expect_average_kept(const std::vector<Phase>& phases, int workers, double gamma) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    at::Tensor moved_by = at::zeros({340}, at::kDouble), limit = at::zeros({340}, at::kDouble);
    for (const Copy& copy : testing::run_workers(workers, [&](const testing::Worker& world) {
           return mix_often(world, phases, gamma, type);
         })) {
      moved_by += copy.end - copy.start;
      // This test's own sums.
      limit += copy.limit + 2 * std::numeric_limits<double>::epsilon() * copy.end.abs();
      EXPECT_GT(copy.moved, 0);
    }
    EXPECT_TRUE((moved_by.abs() <= limit).all().item<bool>())
        << type << ": " << (moved_by.abs() - limit).max().item<double>() << " too far";
  }
}

TEST(ModuloAverage, IsKeptByPairs) {
  expect_average_kept(make_topology("ring", 4, 1), 4, 1);
  expect_average_kept(make_topology("ring", 4, 1), 4, 0.3);
}

TEST(ModuloAverage, IsKeptByEdgesOfThree) {
  const std::vector<Phase> phases = {{{{0, 1, 2}, 1.0 / 3}, {{3}, 1.0}},
                                     {{{1, 2, 3}, 0.5}, {{0}, 1.0}}};
  expect_average_kept(phases, 4, 1);
  expect_average_kept(phases, 4, 0.3);
}

}  // namespace
}  // namespace decent
