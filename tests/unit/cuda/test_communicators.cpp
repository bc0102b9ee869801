// NCCL, and gloo with staging, between processes.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <future>
#include <stdexcept>

#include "gpu_workers.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::GpuWorker;
using testing::run_gpu_workers;
using Clock = std::chrono::steady_clock;

class GpusBy : public ::testing::TestWithParam<BackendRequest> {};
INSTANTIATE_TEST_SUITE_P(Backend, GpusBy,
                         ::testing::Values(BackendRequest::nccl, BackendRequest::gloo),
                         [](const auto& test) {
                           return test.param == BackendRequest::nccl ? "nccl" : "gloo";
                         });

at::Tensor numbers(const GpuWorker& worker, std::int64_t count, int first, at::ScalarType dtype) {
  return (at::arange(count) + first).to(dtype).to(worker.device);
}

TEST_P(GpusBy, AllReduceAddsUp) {
  run_gpu_workers(2, GetParam(), [](const GpuWorker& worker) {
    for (const at::ScalarType dtype :
         {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong}) {
      const at::Tensor x = numbers(worker, 100, worker.communicator->rank(), dtype);
      worker.communicator->all_reduce_sum(x)->wait();
      EXPECT_TRUE(at::equal(x.cpu(), (2 * at::arange(100) + 1).to(dtype))) << dtype;
    }
  });
}

TEST_P(GpusBy, BroadcastsAnyElementType) {
  run_gpu_workers(2, GetParam(), [](const GpuWorker& worker) {
    for (const at::ScalarType dtype :
         {at::kBool, at::kShort, at::kHalf, at::kByte, at::kComplexFloat, at::kDouble}) {
      const at::Tensor x =
          at::full({7, 3}, worker.communicator->rank(), at::kLong).to(dtype).to(worker.device);
      worker.communicator->broadcast(x, 1)->wait();
      EXPECT_TRUE(at::equal(x.cpu(), at::full({7, 3}, 1, at::kLong).to(dtype))) << dtype;
      worker.communicator->broadcast(at::zeros({0}, x.options()), 0)->wait();
    }
  });
}

// As training does: several exchanges under way, waited for in order, each result used at once and
// sent again. Compared with the same on the CPU, bit for bit.
TEST_P(GpusBy, ExchangesInTheOrderOfTheStream) {
  run_gpu_workers(2, GetParam(), [](const GpuWorker& worker) {
    constexpr int kBuckets = 4;
    constexpr int kRounds = 25;
    constexpr std::int64_t kNumbers = 1 << 20;
    const int rank = worker.communicator->rank();
    const auto start = [](int whose, int bucket) {
      return (at::arange(kNumbers, at::kFloat) * 0.001 + 10 * whose + bucket).sin();
    };
    const auto step = [](const at::Tensor& x, const at::Tensor& other, int whose) {
      x.add_(other).mul_(0.5).add_(0.01 * (whose + 1));
    };
    std::vector<at::Tensor> x, received;
    std::vector<Pending> works(kBuckets);
    for (int b = 0; b < kBuckets; ++b) {
      x.push_back(start(rank, b).to(worker.device));
      received.push_back(at::empty_like(x.back()));
    }
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t b = 0; b < kBuckets; ++b) {
        if (works[b]) {
          works[b]->wait();
          step(x[b], received[b], rank);
        }
        works[b] = worker.communicator->exchange(x[b], received[b], 1 - rank, static_cast<int>(b));
      }
    }
    for (const Pending& work : works) work->wait();
    for (int b = 0; b < kBuckets; ++b) {
      at::Tensor own = start(rank, b), peer = start(1 - rank, b);
      for (int round = 1; round < kRounds; ++round) {
        const at::Tensor before = own.clone();
        step(own, peer, rank);
        step(peer, before, 1 - rank);
      }
      const auto i = static_cast<std::size_t>(b);
      EXPECT_TRUE(at::equal(x[i].cpu(), own)) << "bucket " << b;
      EXPECT_TRUE(at::equal(received[i].cpu(), peer)) << "bucket " << b;
    }
  });
}

TEST_P(GpusBy, TensorsOfTheCpuTakeTheHostsWay) {
  run_gpu_workers(2, GetParam(), [](const GpuWorker& worker) {
    const at::Tensor on_gpu = numbers(worker, 10, 0, at::kFloat);
    const at::Tensor on_cpu = at::full({3}, 1 + worker.communicator->rank());
    const Pending first = worker.communicator->all_reduce_sum(on_gpu);
    worker.communicator->all_reduce_sum(on_cpu)->wait();
    first->wait();
    EXPECT_EQ(on_cpu[0].item<int>(), 3);
    EXPECT_EQ(on_gpu[9].item<float>(), 18);
  });
}

TEST_P(GpusBy, SubgroupsAreGroupsOfTheirOwn) {
  run_gpu_workers(3, GetParam(), [](const GpuWorker& worker) {
    const int rank = worker.communicator->rank();
    if (rank == 1) return;
    for (int i = 0; i < 2; ++i) {
      const auto pair = worker.communicator->subgroup({0, 2});
      EXPECT_EQ(pair->rank(), rank / 2);
      const at::Tensor x = numbers(worker, 10, rank, at::kLong);
      pair->all_reduce_sum(x)->wait();
      EXPECT_EQ(x[0].item<int>(), 2);
      pair->barrier();
    }
  });
}

// NCCL's wait() makes the stream wait, not the thread.
TEST(GpusByNccl, WaitReturnsWhileTheGpuWorks) {
  run_gpu_workers(2, BackendRequest::nccl, [](const GpuWorker& worker) {
    const at::Tensor x = numbers(worker, 10, 0, at::kFloat);
    worker.communicator->all_reduce_sum(x)->wait();
    const at::Tensor a = at::full({4096, 4096}, 1e-4, at::TensorOptions().device(worker.device));
    // cuBLAS sets itself up, and the first use of a kernel may wait for those that run.
    at::Tensor product = at::mm(a, a);
    worker.communicator->all_reduce_sum(product.sum().reshape({1}))->wait();
    EXPECT_EQ(x[1].item<float>(), 2);
    for (int i = 0; i < 300; ++i) product = at::mm(product, a);  // half a second and more
    const auto begin = Clock::now();
    const at::Tensor sum = product.sum().reshape({1});
    const Pending work = worker.communicator->all_reduce_sum(sum);
    EXPECT_FALSE(work->done());
    work->wait();
    EXPECT_LT(Clock::now() - begin, 200ms);
    EXPECT_TRUE(std::isfinite(sum.item<float>()));
    EXPECT_TRUE(work->done());
  });
}

// The control plane says who was lost; neither c10d nor NCCL ends the process first. That the
// operation never comes to its end keeps nobody from leaving.
TEST(GpusByNccl, AWorkerThatDiesIsNamed) {
  std::promise<std::string> told;
  const auto results = testing::results_of_gpu_workers(
      2, BackendRequest::nccl,
      [&](const GpuWorker& worker) {
        const at::Tensor x = numbers(worker, 10, 0, at::kFloat);
        worker.communicator->all_reduce_sum(x)->wait();
        EXPECT_EQ(x[1].item<float>(), 2);
        if (worker.communicator->rank() == 1) std::raise(SIGKILL);
        worker.communicator->all_reduce_sum(x)->wait();
        throw std::runtime_error(told.get_future().get());
      },
      [&](const Failure& failure, bool) { told.set_value(failure.message); });
  EXPECT_THAT(results[0], ::testing::StartsWith("error: lost worker 1"));
  EXPECT_EQ(results[1], "error: killed by signal 9");
}

}  // namespace
}  // namespace decent
