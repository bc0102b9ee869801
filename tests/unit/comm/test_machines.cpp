// Workers of two machines: those of one share memory, beside a group of all by gloo.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <thread>

#include "../support/workers.h"
#include "decent/comm/by_place.h"

namespace decent {
namespace {

using testing::Worker;

constexpr int kWorkers = 5;
const std::vector<int> kMachineOf = {0, 1, 0, 1, 2};  // by rank: two machines of two, and one alone

bool together(int a, int b) {
  return kMachineOf[static_cast<std::size_t>(a)] == kMachineOf[static_cast<std::size_t>(b)];
}

std::vector<int> ranks_of_machine(int machine) {
  std::vector<int> ranks;
  for (int rank = 0; rank < kWorkers; ++rank) {
    if (kMachineOf[static_cast<std::size_t>(rank)] == machine) ranks.push_back(rank);
  }
  return ranks;
}

// Runs `work(communicator)` on every worker of these machines.
template <typename Work>
void run_machines(const Work& work) {
  std::vector<std::vector<std::shared_ptr<Arena>>> arenas(3);
  for (const int machine : kMachineOf)
    arenas[static_cast<std::size_t>(machine)].push_back(Mail::make_arena(2));
  testing::run_workers(kWorkers, [&](const Worker& all) {
    const int machine = kMachineOf[static_cast<std::size_t>(all->rank())];
    const std::vector<int> ranks = ranks_of_machine(machine);
    if (ranks.size() == 1) {
      work(all);
      return testing::Nothing();
    }
    auto mail = std::make_shared<Mail>(all->rank() == ranks[0] ? 0U : 1U,
                                       arenas[static_cast<std::size_t>(machine)]);
    work(by_place(all, share_memory(std::move(mail), ranks), ranks));
    return testing::Nothing();
  });
}

at::Tensor values_of(int rank) { return at::arange(1000, at::kFloat).add(10'000 * rank); }

TEST(Machines, ReadInPlaceWhatTheirOwnWorkersSend) {
  run_machines([](const Worker& world) {
    const bool alone = world->rank() == 4;
    EXPECT_EQ(world->memory_to_send(100).defined(), !alone);
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == world->rank()) continue;
      EXPECT_EQ(world->reads_in_place(peer), together(peer, world->rank()));
    }
  });
}

TEST(Machines, ExchangeWithAnyWorker) {
  run_machines([](const Worker& world) {
    const at::Tensor own = values_of(world->rank());
    std::vector<std::shared_ptr<PendingReceived>> works;
    std::vector<at::Tensor> rooms;
    std::vector<Pending> copies;
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == world->rank()) continue;
      bool received_in_room = false;
      works.push_back(world->exchange_views(own, peer, 1, [&] {
        received_in_room = true;
        return at::empty_like(own);
      }));
      EXPECT_EQ(received_in_room, !together(peer, world->rank()));
      rooms.push_back(at::empty_like(own));
      copies.push_back(world->exchange(own, rooms.back(), peer, 2));
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      const int peer = static_cast<int>(i) + (static_cast<int>(i) >= world->rank() ? 1 : 0);
      works[i]->wait();
      EXPECT_TRUE(at::equal(works[i]->parts().at(0).values, values_of(peer)));
      copies[i]->wait();
      EXPECT_TRUE(at::equal(rooms[i], values_of(peer)));
    }
  });
}

// By the numbers that members have in the new group.
TEST(Machines, DivideIntoGroupsThatShareMemoryWhereTheyCan) {
  const std::vector<std::vector<int>> groups = {{2, 0}, {1, 3}, {4, 3, 2, 1}};
  run_machines([&](const Worker& world) {
    for (const std::vector<int>& members : groups) {
      const auto found = std::find(members.begin(), members.end(), world->rank());
      if (found == members.end()) continue;
      const Worker group = world->subgroup(members);
      EXPECT_EQ(group->rank(), found - members.begin());
      for (int member = 0; member < group->size(); ++member) {
        const int rank = members[static_cast<std::size_t>(member)];
        if (rank == world->rank()) continue;
        EXPECT_EQ(group->reads_in_place(member), together(rank, world->rank()));
        const at::Tensor own = values_of(world->rank());
        const auto work =
            group->exchange_views(own, member, 0, [&] { return at::empty_like(own); });
        work->wait();
        EXPECT_TRUE(at::equal(work->parts().at(0).values, values_of(rank)));
      }
      at::Tensor sum = at::full({3}, 1 << world->rank(), at::kLong);
      group->all_reduce_sum(sum)->wait();
      std::int64_t expected = 0;
      for (const int rank : members) expected += 1 << rank;
      EXPECT_TRUE(at::equal(sum, at::full({3}, expected, at::kLong)));
      at::Tensor given = at::full({2}, world->rank(), at::kLong);
      group->broadcast(given, 1)->wait();
      EXPECT_TRUE(at::equal(given, at::full({2}, members[1], at::kLong)));
      group->barrier();
    }
  });
}

}  // namespace
}  // namespace decent
