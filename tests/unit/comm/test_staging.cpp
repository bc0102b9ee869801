#include "decent/comm/staging.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../support/workers.h"
#include "fake_device.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::FakeDevice;
using testing::run_workers;
using testing::Worker;

at::Tensor numbers(std::int64_t count, int first, at::ScalarType dtype = at::kFloat) {
  return (at::arange(count) + first).to(dtype);
}

class StagedOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, StagedOf, ::testing::Values(1, 2, 3));

TEST_P(StagedOf, AllReduceAddsUp) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble, at::kLong}) {
    run_workers(GetParam(), [&](const Worker& host) {
      const auto device = std::make_shared<FakeDevice>();
      const auto world = stage(host, device);
      const at::Tensor x = device->put(numbers(100, 1 + world->rank(), dtype));
      world->all_reduce_sum(x)->wait();
      at::Tensor expected = at::zeros({100}, dtype);
      for (int i = 0; i < GetParam(); ++i) expected += numbers(100, 1 + i, dtype);
      EXPECT_TRUE(at::equal(x, expected)) << dtype;
      EXPECT_EQ(device->stream_waits(), 1);
      world->barrier();
      return testing::Nothing();
    });
  }
}

TEST_P(StagedOf, BroadcastCopiesNoMoreThanItMust) {
  run_workers(GetParam(), [&](const Worker& host) {
    const auto device = std::make_shared<FakeDevice>();
    const auto world = stage(host, device);
    const int root = GetParam() - 1;
    const bool sends = world->rank() == root;
    const at::Tensor x = device->put(numbers(77, sends ? 5 : 0, at::kHalf).view({7, 11}));
    world->broadcast(x, root)->wait();
    EXPECT_TRUE(at::equal(x, numbers(77, 5, at::kHalf).view({7, 11})));
    EXPECT_EQ(device->copied_out, sends ? 1 : 0);
    EXPECT_EQ(device->copied_in, sends ? 0 : 1);
    world->barrier();
    return testing::Nothing();
  });
}

TEST(Staged, ExchangesManyAtOnceInFewBuffers) {
  run_workers(2, [](const Worker& host) {
    const auto device = std::make_shared<FakeDevice>();
    const auto world = stage(host, device);
    const int peer = 1 - world->rank();
    constexpr int kBuckets = 5;
    for (int round = 0; round < 20; ++round) {
      std::vector<at::Tensor> out, in;
      std::vector<Pending> works;
      for (int bucket = 0; bucket < kBuckets; ++bucket) {
        out.push_back(device->put(numbers(1000, 100 * world->rank() + 10 * round + bucket)));
        in.push_back(device->put(at::zeros({1000})));
        works.push_back(world->exchange(out.back(), in.back(), peer, bucket));
      }
      for (int bucket = kBuckets - 1; bucket >= 0; --bucket) {
        const auto i = static_cast<std::size_t>(bucket);
        works[i]->wait();
        works[i]->wait();
        EXPECT_TRUE(works[i]->done());
        EXPECT_TRUE(at::equal(in[i], numbers(1000, 100 * peer + 10 * round + bucket)));
        EXPECT_TRUE(at::equal(out[i], numbers(1000, 100 * world->rank() + 10 * round + bucket)));
      }
    }
    EXPECT_LE(device->allocated, 2 * kBuckets);
    world->barrier();
    return testing::Nothing();
  });
}

// Empty tensors, and CPU tensors between those of the device, keep their place in the order.
TEST(Staged, MixesTensorsOfTheCpu) {
  run_workers(3, [](const Worker& host) {
    const auto device = std::make_shared<FakeDevice>();
    const auto world = stage(host, device);
    const at::Tensor on_device = device->put(numbers(500, world->rank()));
    const at::Tensor on_host = numbers(500, 10 * world->rank());
    const at::Tensor none = device->put(at::zeros({0}));
    const at::Tensor again = device->put(numbers(500, world->rank()));
    std::vector<Pending> works;
    works.push_back(world->all_reduce_sum(on_device));
    works.push_back(world->all_reduce_sum(on_host));
    works.push_back(world->broadcast(none, 0));
    works.push_back(world->broadcast(again, 2));
    for (const Pending& work : works) work->wait();
    EXPECT_TRUE(at::equal(on_device, 3 * numbers(500, 1)));
    EXPECT_TRUE(at::equal(on_host, numbers(500, 0) * 3 + 30));
    EXPECT_TRUE(at::equal(again, numbers(500, 2)));
    world->barrier();
    return testing::Nothing();
  });
}

TEST(Staged, MakesGroupsOfItsOwn) {
  run_workers(3, [](const Worker& host) {
    const auto device = std::make_shared<FakeDevice>();
    const auto world = stage(host, device);
    if (world->rank() == 1) return testing::Nothing();
    const auto pair = world->subgroup({0, 2});
    EXPECT_EQ(pair->size(), 2);
    EXPECT_EQ(pair->rank(), world->rank() / 2);
    const at::Tensor x = device->put(numbers(50, world->rank()));
    pair->all_reduce_sum(x)->wait();
    EXPECT_TRUE(at::equal(x, 2 * numbers(50, 1)));
    EXPECT_EQ(world->subgroup({world->rank()})->size(), 1);
    EXPECT_THROW(world->subgroup({1}), std::logic_error);
    pair->barrier();
    return testing::Nothing();
  });
}

TEST(Staged, LosesAPeer) {
  EXPECT_THROW(run_workers(2,
                           [](const Worker& host) {
                             const auto device = std::make_shared<FakeDevice>();
                             const auto world = stage(host, device);
                             if (world->rank() == 1) throw testing::Left();
                             const at::Tensor x = device->put(numbers(9, 0));
                             const Pending work = world->exchange(x, at::empty_like(x), 1, 0);
                             EXPECT_THROW(work->wait(), PeerLost);
                             EXPECT_THROW(work->wait(), PeerLost);
                             EXPECT_TRUE(work->done());
                             EXPECT_THROW(world->all_reduce_sum(x)->wait(), PeerLost);
                             return testing::Nothing();
                           }),
               testing::Left);
}

// A group on the host that records what it is asked for, of which the test decides when it ends.
class RecordingHost : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Pending all_reduce_sum(const at::Tensor& tensor) override { return record("sum", tensor); }
  Pending broadcast(const at::Tensor& tensor, int) override { return record("cast", tensor); }
  Pending exchange(const at::Tensor& send, const at::Tensor&, int, int) override {
    return record("exchange", send);
  }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>&) override { return nullptr; }
  void barrier() override { record("barrier", at::zeros({1})); }

  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::promise<void> may_end;

 private:
  class Work : public PendingWork {
   public:
    explicit Work(std::shared_future<void> end) : end_(std::move(end)) {}
    void wait() override { end_.get(); }
    bool done() override { return false; }

   private:
    std::shared_future<void> end_;
  };

  Pending record(const std::string& name, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(name + " " + std::to_string(tensor.numel()));
    return std::make_unique<Work>(end_);
  }

  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::shared_future<void> end_ = may_end.get_future().share();
};

// What a later operation needs is ready long before the first one's copy is.
TEST(Staged, StartsInTheOrderOfTheCalls) {
  const auto host = std::make_shared<RecordingHost>();
  const auto device = std::make_shared<FakeDevice>();
  const auto world = stage(host, device);
  std::promise<void> gate;
  device->hold(gate.get_future().share());
  const at::Tensor a = device->put(at::zeros({1})), b = device->put(at::zeros({3}));
  std::vector<Pending> works;
  works.push_back(world->exchange(a, device->put(at::zeros({1})), 1, 0));
  device->hold({});
  works.push_back(world->all_reduce_sum(at::zeros({2})));
  works.push_back(world->broadcast(b, 0));
  EXPECT_THAT(host->calls(), ::testing::IsEmpty());
  for (const Pending& work : works) EXPECT_FALSE(work->done());
  gate.set_value();
  world->barrier();
  EXPECT_THAT(host->calls(), ::testing::ElementsAre("exchange 1", "sum 2", "cast 3", "barrier 1"));
  for (const Pending& work : works) EXPECT_FALSE(work->done());
  host->may_end.set_value();
  for (const Pending& work : works) work->wait();
}

// done() is the end of the copy to the device, not of the host's part.
TEST(Staged, IsDoneWhenTheDeviceHasIt) {
  const auto host = std::make_shared<RecordingHost>();
  const auto device = std::make_shared<FakeDevice>();
  const auto world = stage(host, device);
  const at::Tensor x = device->put(at::zeros({4}));
  const Pending work = world->all_reduce_sum(x);
  world->barrier();  // started
  std::promise<void> gate;
  device->hold(gate.get_future().share());
  host->may_end.set_value();
  while (device->copied_in == 0) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(work->done());
  gate.set_value();
  work->wait_on_host();
  EXPECT_TRUE(work->done());
  EXPECT_EQ(device->stream_waits(), 0);
  work->wait();
  EXPECT_EQ(device->stream_waits(), 1);
}

TEST(Staged, PassesOnWhatTheHostThrows) {
  const auto host = std::make_shared<RecordingHost>();
  const auto device = std::make_shared<FakeDevice>();
  const auto world = stage(host, device);
  host->may_end.set_exception(std::make_exception_ptr(PeerLost("worker 1 went home")));
  const Pending work = world->all_reduce_sum(device->put(at::zeros({4})));
  try {
    work->wait();
    ADD_FAILURE() << "no error";
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "worker 1 went home");
  }
}

// A peer may be gone: nothing is waited for. What waits for a dropped operation learns that.
TEST(Staged, EndsWithoutWaiting) {
  const auto host = std::make_shared<RecordingHost>();
  const auto device = std::make_shared<FakeDevice>();
  std::promise<void> gate;
  device->hold(gate.get_future().share());
  auto world = stage(host, device);
  const at::Tensor x = device->put(at::zeros({4}));
  const Pending first = world->all_reduce_sum(x), second = world->all_reduce_sum(x);
  world.reset();  // returns
  gate.set_value();
  host->may_end.set_value();
  EXPECT_THROW(second->wait(), std::future_error);
}

}  // namespace
}  // namespace decent
