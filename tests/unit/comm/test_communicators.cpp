#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "../support/workers.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::run_workers;
using testing::Worker;
using Clock = std::chrono::steady_clock;

class CommunicatorOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, CommunicatorOf, ::testing::Values(1, 2, 3, 4));

TEST_P(CommunicatorOf, NumbersItsWorkers) {
  const auto ranks =
      run_workers(GetParam(), [](const Worker& w) { return std::pair(w->rank(), w->size()); });
  for (int i = 0; i < GetParam(); ++i) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(i)], std::pair(i, GetParam()));
  }
}

TEST_P(CommunicatorOf, AllReduceAddsUp) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kLong, at::kInt, at::kBFloat16}) {
    const auto sums = run_workers(GetParam(), [&](const Worker& world) {
      at::Tensor x = at::arange(1000, dtype).remainder(16) * (1 + world->rank());
      world->all_reduce_sum(x)->wait();
      return x;
    });
    // 1 + 2 + .. + n times at most 15: small integers, exact in every type.
    const int n = GetParam();
    const at::Tensor expected = at::arange(1000, dtype).remainder(16) * (n * (n + 1) / 2);
    for (const at::Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, expected)) << dtype;
  }
}

TEST_P(CommunicatorOf, AllReduceGivesEveryoneTheSameBits) {
  const auto sums = run_workers(GetParam(), [](const Worker& world) {
    at::Tensor x = (at::arange(10007, at::kFloat) * (1.1 + world->rank())).sin();
    world->all_reduce_sum(x)->wait();
    return x;
  });
  for (const at::Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, sums[0]));
}

TEST_P(CommunicatorOf, BroadcastsAnyElementType) {
  for (const at::ScalarType dtype :
       {at::kBool, at::kShort, at::kHalf, at::kByte, at::kComplexFloat, at::kDouble, at::kLong}) {
    const int root = GetParam() - 1;
    const auto values = run_workers(GetParam(), [&](const Worker& world) {
      at::Tensor x = at::full({7, 3}, world->rank() == root ? 1 : 0, at::kLong).to(dtype);
      world->broadcast(x, root)->wait();
      at::Tensor empty = at::empty({0}, dtype);
      world->broadcast(empty, root)->wait();
      return x;
    });
    for (const at::Tensor& value : values) {
      EXPECT_TRUE(at::equal(value, at::full({7, 3}, 1, at::kLong).to(dtype))) << dtype;
    }
  }
}

TEST_P(CommunicatorOf, BarrierWaitsForTheLast) {
  std::atomic<int> arrived = 0;
  run_workers(GetParam(), [&](const Worker& world) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20) * world->rank());
    ++arrived;
    world->barrier();
    EXPECT_EQ(arrived, GetParam());
    return testing::Nothing();
  });
}

TEST_P(CommunicatorOf, HandlesMayBeWaitedForTwice) {
  run_workers(GetParam(), [&](const Worker& world) {
    at::Tensor x = at::full({3}, 1.0);
    const Pending work = world->all_reduce_sum(x);
    work->wait();
    work->wait();
    EXPECT_TRUE(work->done());
    EXPECT_TRUE(at::equal(x, at::full({3}, 1.0 * GetParam())));
    return testing::Nothing();
  });
}

// Two exchanges under way at once, waited for in the other order; tags keep them apart.
TEST(Exchange, KeepsTagsApart) {
  run_workers(4, [](const Worker& world) {
    const int peer = world->rank() ^ 1;
    const auto content = [](int rank, int tag) {
      return at::full({100 + 50 * tag}, 10 * rank + tag, at::kFloat);
    };
    std::vector<at::Tensor> out, in;
    std::vector<Pending> works;
    for (const int tag : {0, 1, 7}) {
      out.push_back(content(world->rank(), tag));
      in.push_back(at::empty_like(out.back()));
      works.push_back(world->exchange(out.back(), in.back(), peer, tag));
    }
    works[1]->wait();
    EXPECT_TRUE(at::equal(in[1], content(peer, 1)));
    works[2]->wait();
    works[0]->wait();
    EXPECT_TRUE(at::equal(in[0], content(peer, 0)));
    EXPECT_TRUE(at::equal(in[2], content(peer, 7)));
    EXPECT_TRUE(at::equal(out[0], content(world->rank(), 0)));
    return testing::Nothing();
  });
}

TEST(Exchange, MovesLargeTensors) {
  run_workers(2, [](const Worker& world) {
    const at::Tensor out = at::full({4 << 20}, world->rank(), at::kFloat);  // 16 MiB each way
    const at::Tensor in = at::empty_like(out);
    world->exchange(out, in, 1 - world->rank(), 0)->wait();
    EXPECT_TRUE(at::equal(in, at::full({4 << 20}, 1 - world->rank(), at::kFloat)));
    return testing::Nothing();
  });
}

// Each way of receiving gives what the other one gives.
TEST(Views, ShowWhatAnExchangeCopies) {
  run_workers(3, [](const Worker& world) {
    for (const bool prepared : {false, true}) {
      at::Tensor out = at::arange(70'001, at::kFloat).mul(1 + world->rank());
      if (const at::Tensor memory = world->memory_to_send(4 * 70'001); prepared && memory.defined())
        out = memory.view(at::kFloat).copy_(out);
      std::vector<std::shared_ptr<PendingReceived>> works;
      for (const int peer : {0, 1, 2}) {
        if (peer == world->rank()) continue;
        works.push_back(world->exchange_views(out, peer, 5, [&] { return at::empty_like(out); }));
      }
      for (const int peer : {0, 1, 2}) {
        if (peer == world->rank()) continue;
        const auto& work = works[static_cast<std::size_t>(peer - (peer > world->rank() ? 1 : 0))];
        work->wait();
        EXPECT_EQ(work->parts().size(), 1U);
        EXPECT_TRUE(
            at::equal(work->parts().at(0).values, at::arange(70'001, at::kFloat).mul(1 + peer)));
      }
      works.clear();
      if (prepared) world->wait_until_read(out);
    }
    return testing::Nothing();
  });
}

// Integers, so that any order of the addends gives the same.
TEST(Views, ShowASum) {
  for (const std::int64_t numel : {1, 33, 70'001}) {
    run_workers(3, [&](const Worker& world) {
      const auto addend = [&](int rank) { return at::arange(numel, at::kDouble).add(1000 * rank); };
      at::Tensor own = world->memory_to_send(8 * numel);
      own = own.defined() ? own.view(at::kDouble).copy_(addend(world->rank()))
                          : addend(world->rank());
      for (const at::Tensor& send : {addend(world->rank()), own}) {
        const auto work = world->sum_views(send, [&] { return at::empty_like(send); });
        work->wait();
        std::int64_t next = 0;
        for (const auto& [begin, values] : work->parts()) {
          EXPECT_EQ(begin, next);
          next += values.numel();
          EXPECT_TRUE(at::equal(values, at::arange(begin, next, at::kDouble).mul(3).add(3000)));
        }
        EXPECT_EQ(next, numel);
      }
      return testing::Nothing();
    });
  }
}

// A sum through memory of any size, and other operations of the same group behind it.
TEST(Operations, OfOneGroupFollowOneAnother) {
  run_workers(4, [](const Worker& world) {
    at::Tensor large = at::full({3 << 20}, 1 + world->rank(), at::kInt);  // 12 MiB
    at::Tensor small = at::full({3}, world->rank(), at::kInt);
    const Pending first = world->all_reduce_sum(large);
    const Pending second = world->broadcast(small, 2);
    at::Tensor third = at::full({2}, 1.5, at::kDouble);
    world->all_reduce_sum(third)->wait();
    second->wait();
    first->wait();
    EXPECT_TRUE(at::equal(large, at::full({3 << 20}, 10, at::kInt)));
    EXPECT_TRUE(at::equal(small, at::full({3}, 2, at::kInt)));
    EXPECT_TRUE(at::equal(third, at::full({2}, 6.0, at::kDouble)));
    return testing::Nothing();
  });
}

TEST(Subgroup, IsAGroupOfItsOwn) {
  run_workers(4, [](const Worker& world) {
    if (world->rank() == 1) return testing::Nothing();
    const Worker group = world->subgroup({0, 2, 3});
    EXPECT_EQ(group->size(), 3);
    EXPECT_EQ(group->rank(), world->rank() == 0 ? 0 : world->rank() - 1);
    at::Tensor x = at::full({5}, 1 << world->rank(), at::kLong);
    group->all_reduce_sum(x)->wait();
    EXPECT_TRUE(at::equal(x, at::full({5}, 1 + 4 + 8, at::kLong)));
    group->barrier();
    if (world->rank() == 0) return testing::Nothing();
    // Members are numbers in the group that is divided.
    const Worker pair = group->subgroup({1, 2});
    EXPECT_EQ(pair->size(), 2);
    EXPECT_EQ(pair->rank(), world->rank() - 2);
    x.fill_(world->rank());
    pair->broadcast(x, 1)->wait();
    EXPECT_TRUE(at::equal(x, at::full({5}, 3, at::kLong)));
    pair->barrier();
    return testing::Nothing();
  });
}

TEST(Subgroup, OfOneNeedsNoNetwork) {
  run_workers(2, [](const Worker& world) {
    const Worker self = world->subgroup({world->rank()});
    EXPECT_EQ(self->size(), 1);
    EXPECT_EQ(self->rank(), 0);
    EXPECT_THROW(world->subgroup({1 - world->rank()}), std::logic_error);
    return testing::Nothing();
  });
}

TEST(Subgroup, MayBeMadeTwice) {
  run_workers(
      3,
      [](const Worker& world) {
        for (int i = 0; i < 2; ++i) {
          const Worker group = world->subgroup({0, 1, 2});
          at::Tensor x = at::full({5}, 1.0);
          group->all_reduce_sum(x)->wait();
          EXPECT_EQ(x[0].item<double>(), 3);
          group->barrier();
        }
        return testing::Nothing();
      },
      std::chrono::seconds(5));
}

TEST(SingleWorker, NeedsNoPeer) {
  const auto world = make_single_worker();
  at::Tensor x = at::full({3}, 2.0);
  world->all_reduce_sum(x)->wait();
  world->broadcast(x, 0)->wait();
  world->barrier();
  EXPECT_TRUE(at::equal(x, at::full({3}, 2.0)));
  EXPECT_EQ(world->subgroup({0})->size(), 1);
  EXPECT_THROW(world->exchange(x, x, 0, 0), std::logic_error);
}

template <typename Operation>
void expect_loss(const Operation& operation, const std::string& words) {
  const auto begin = Clock::now();
  EXPECT_THROW(run_workers(2,
                           [&](const Worker& world) {
                             if (world->rank() == 1) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(200));
                               throw testing::Left();
                             }
                             try {
                               operation(*world);
                               ADD_FAILURE() << "no error";
                             } catch (const PeerLost& error) {
                               EXPECT_THAT(error.what(), HasSubstr(words));
                               EXPECT_EQ(error.code(), ExitCode::peer_lost);
                             }
                             return testing::Nothing();
                           }),
               testing::Left);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15));  // well before the timeout of 20 s
}

TEST(LostPeer, EndsAnExchange) {
  expect_loss(
      [](Communicator& world) {
        const at::Tensor x = at::full({3}, 1.0), y = at::empty_like(x);
        world.exchange(x, y, 1, 0)->wait();
      },
      "worker 0 with worker 1");
}

TEST(LostPeer, EndsAnAllReduce) {
  expect_loss([](Communicator& world) { world.all_reduce_sum(at::full({3}, 1.0))->wait(); },
              "all-reduce");
}

TEST(LostPeer, EndsABarrier) {
  expect_loss([](Communicator& world) { world.barrier(); }, "barrier");
}

TEST(SilentPeer, IsLostAfterTheTimeout) {
  if (testing::through_shared_memory()) GTEST_SKIP() << "silence is for the control plane to hear";
  const auto timeout = std::chrono::seconds(3);
  std::atomic<bool> noticed = false;
  EXPECT_THROW(run_workers(
                   2,
                   [&](const Worker& world) {
                     if (world->rank() == 0) {
                       const at::Tensor x = at::full({3}, 1.0), y = at::empty_like(x);
                       const auto begin = Clock::now();
                       EXPECT_THROW(world->exchange(x, y, 1, 0)->wait(), PeerLost);
                       EXPECT_LT(Clock::now() - begin, 3 * timeout);
                       noticed = true;
                     }
                     while (!noticed) std::this_thread::sleep_for(std::chrono::milliseconds(10));
                     throw testing::Left();
                     return testing::Nothing();
                   },
                   timeout),
               testing::Left);
}

TEST(ConnectGloo, NamesAnInterfaceThatDoesNotExist) {
  testing::turn_off_flight_recorder();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  try {
    connect_gloo(*store, 0, 2,
                 {.interfaces = {"no-such-card"}, .timeout = std::chrono::seconds(5)});
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'no-such-card'"));
    EXPECT_THAT(error.what(), HasSubstr("GLOO_SOCKET_IFNAME"));
  }
}

TEST(ConnectGloo, GivesUpOnAWorkerThatNeverComes) {
  testing::turn_off_flight_recorder();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto timeout = std::chrono::seconds(1);
  store->setTimeout(timeout);
  EXPECT_THROW(
      connect_gloo(*store, 0, 2, {.interfaces = {}, .address = "127.0.0.1", .timeout = timeout}),
      PeerLost);
}

}  // namespace
}  // namespace decent
