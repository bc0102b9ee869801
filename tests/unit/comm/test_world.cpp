#include "decent/comm/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "../support/launches.h"
#include "../support/workers.h"
#include "../support/worlds.h"
#include "decent/comm/gather.h"
#include "decent/core/host.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

std::string verdict(const std::vector<Outcome>& outcomes, ExitCode* code = nullptr) {
  try {
    throw_if_failed(outcomes);
  } catch (const SharedError& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
  return "fine";
}

const Outcome kFine = {};

TEST(ThrowIfFailed, IsSilentWhereAllIsWell) {
  EXPECT_EQ(verdict({}), "fine");
  EXPECT_EQ(verdict({kFine}), "fine");
  EXPECT_EQ(verdict({kFine, kFine, kFine}), "fine");
}

TEST(ThrowIfFailed, SaysOnceWhatAllSay) {
  const Outcome wrong = {ExitCode::user_error, "lr must be positive"};
  ExitCode code = ExitCode::done;
  EXPECT_EQ(verdict({wrong}, &code), "lr must be positive");
  EXPECT_EQ(code, ExitCode::user_error);
  EXPECT_EQ(verdict({wrong, wrong, wrong}), "lr must be positive");
}

TEST(ThrowIfFailed, NamesTheRanksThatDiffer) {
  const Outcome missing = {ExitCode::user_error, "no file"};
  const Outcome full = {ExitCode::write_failed, "disk full"};
  EXPECT_EQ(verdict({kFine, missing, kFine, missing}), "rank 1, 3: no file");
  ExitCode code = ExitCode::done;
  EXPECT_EQ(verdict({full, missing, full, kFine}, &code),
            "rank 0, 2: disk full\n(failed too: rank 1)");
  EXPECT_EQ(code, ExitCode::write_failed);
  EXPECT_EQ(verdict({full, missing, missing}), "rank 0: disk full\n(failed too: rank 1, 2)");
  // The same words with another code are another mistake.
  EXPECT_EQ(verdict({kFine, missing, {ExitCode::bug, "no file"}}),
            "rank 1: no file\n(failed too: rank 2)");
}

// Some stages are rank 0's alone (the output folder): no other worker could have failed in them.
TEST(ThrowIfFailed, NeedNotNameRankZeroAlone) {
  EXPECT_EQ(verdict({{ExitCode::write_failed, "disk full"}, kFine, kFine}), "disk full");
}

void unexpected_failure(const Failure& failure, bool) { ADD_FAILURE() << failure.message; }

TEST(World, OfOneAsksNobody) {
  World world(Launch{}, {});
  EXPECT_THAT(world.launch().machines, ::testing::ElementsAre(0));
  EXPECT_THAT(world.member().hosts, ::testing::ElementsAre(host_name()));
  const auto outcomes = world.gather("start", Outcome{ExitCode::user_error, "two\nlines"});
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].message, "two\nlines");
  DeviceChoice choice;
  EXPECT_EQ(world.communicator(choice)->size(), 1);
  world.leave_after_speaker();
}

TEST(World, GathersAndConnects) {
  testing::run_worlds(3, [](World& world) {
    const int rank = world.launch().rank;
    EXPECT_THAT(world.launch().machines, ::testing::ElementsAre(0, 0, 0));
    EXPECT_THAT(world.member().hosts,
                ::testing::ElementsAre(host_name(), host_name(), host_name()));
    const std::string own = "two\nlines of " + std::to_string(rank);
    for (const char* stage : {"first", "second"}) {
      const auto outcomes = world.gather(stage, Outcome{static_cast<ExitCode>(rank), stage + own});
      for (int i = 0; i < 3; ++i) {
        const Outcome& outcome = outcomes.at(static_cast<std::size_t>(i));
        EXPECT_EQ(outcome.code, static_cast<ExitCode>(i));
        EXPECT_EQ(outcome.message, stage + ("two\nlines of " + std::to_string(i)));
      }
    }
    DeviceChoice choice;
    const auto communicator = world.communicator(choice);
    EXPECT_EQ(communicator->rank(), rank);
    EXPECT_EQ(communicator->size(), 3);
    communicator->barrier();
    world.leave_after_speaker();
  });
}

// What workers tell each other need not be UTF-8 (names of files), nor short.
TEST(World, GathersValuesOfManyKinds) {
  testing::run_worlds(2, [](World& world) {
    const int rank = world.launch().rank;
    const std::string odd = {'a', '\xff', '\0', 'b'};
    EXPECT_EQ(world.gather("text", odd + std::to_string(rank)),
              (std::vector<std::string>{odd + "0", odd + "1"}));
    EXPECT_EQ(world.gather("number", 0.1 + rank), (std::vector<double>{0.1, 0.1 + 1}));
    const std::string large(5'000'000, static_cast<char>('x' + rank));
    EXPECT_EQ(world.gather("large", large).at(1), std::string(5'000'000, 'y'));
  });
}

// The store of torchrun's agents, which outlives the workers.
class AgentStore {
 public:
  AgentStore() {
    testing::turn_off_flight_recorder();
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(port_);
    options.isServer = true;
    options.waitWorkers = false;
    host_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

  c10d::Store& host() { return *host_; }

  Launch launch(int rank, int workers, const std::string& script = "") const {
    Launch launch = testing::launch_of(rank, workers, port_);
    launch.agent_store = true;
    launch.script = script;
    return launch;
  }

 private:
  const int port_ = testing::free_port();
  c10::intrusive_ptr<c10d::Store> host_;
};

// A launcher's store outlives the programs that a script starts in turn. Here as the threads of one
// process: a host of the store that stays, and three programs of two workers at it.
TEST(World, MeetsAnewAtAStoreThatHasMetBefore) {
  AgentStore store;
  const auto launch_at_host = [&](int rank) { return store.launch(rank, 2); };
  for (int program = 0; program < 3; ++program) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        World world(launch_at_host(rank), {.timeout = 20s, .on_failure = unexpected_failure});
        EXPECT_EQ(world.gather("program", program), (std::vector<int>{program, program}));
        world.control().leave();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // In the fourth, worker 1 dies before it meets worker 0, and its script goes on to the fifth.
  std::thread first([&] {
    try {
      World world(launch_at_host(0), {.timeout = 20s, .on_failure = unexpected_failure});
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr("lost worker 1 of 2: it ended before all had"));
    }
    World world(launch_at_host(0), {.timeout = 20s, .on_failure = unexpected_failure});
    EXPECT_EQ(world.gather("program", 5), (std::vector<int>{5, 5}));
    world.control().leave();
  });
  std::thread second([&] {
    store.host().add("attempt/decent/2-workers//starts/1/", 1);
    World world(launch_at_host(1), {.timeout = 20s, .on_failure = unexpected_failure});
    EXPECT_EQ(world.gather("program", 5), (std::vector<int>{5, 5}));
    world.control().leave();
  });
  first.join();
  second.join();
}

// Each machine may offer something else; some workers in NCCL would wait for the others for ever.
TEST(World, RefusesBackendsThatDiffer) {
  testing::turn_off_flight_recorder();
  const int port = testing::free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank, port] {
      World world(testing::launch_of(rank, 3, port),
                  {.timeout = 20s, .on_failure = unexpected_failure});
      try {
        DeviceChoice choice{.backend = rank == 1 ? Backend::nccl : Backend::gloo};
        world.communicator(choice);
        ADD_FAILURE() << "no error";
      } catch (const SharedError& error) {
        EXPECT_STREQ(
            error.what(),
            "the workers' backends differ: nccl on rank 1, gloo on rank 0, 2. Choose backend "
            "gloo, or device cpu, for all of them");
        EXPECT_EQ(error.code(), ExitCode::user_error);
      }
      world.leave_after_speaker();
      world.control().leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One of those that wait tells who is missing; the others know it from that one.
TEST(World, NamesWhoDoesNotShowUp) {
  testing::turn_off_flight_recorder();
  const int port = testing::free_port();
  std::vector<std::string> messages(3);
  std::vector<std::thread> threads;
  for (int rank : {0, 2}) {
    threads.emplace_back([&messages, rank, port] {
      std::string& message = messages.at(static_cast<std::size_t>(rank));
      try {
        World world(testing::launch_of(rank, 3, port),
                    {.timeout = 3s,  // worker 2 connects well before
                     .timeout_setting = "parallel.timeout_s",
                     .on_failure = unexpected_failure});
      } catch (const SharedError& error) {
        EXPECT_EQ(error.code(), ExitCode::peer_lost);
        message = std::string("shared: ") + error.what();
      } catch (const PeerLost& error) {
        message = std::string("own: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = "worker 1 of 3 has not shown up within 3 s (parallel.timeout_s)";
  EXPECT_THAT(messages[0], ::testing::AnyOf("own: " + text, "shared: " + text));
  EXPECT_THAT(messages[2], ::testing::AnyOf("own: " + text, "shared: " + text));
  EXPECT_TRUE(messages[0].starts_with("own") || messages[2].starts_with("own"));
}

// The message of the error with which the worker ends, after "own: " if this worker tells it.
std::string end_of_worker(const Launch& launch, std::chrono::duration<double> timeout) {
  try {
    World world(launch, {.timeout = timeout,
                         .timeout_setting = "parallel.timeout_s",
                         .on_failure = unexpected_failure});
  } catch (const SharedError& error) {
    EXPECT_EQ(error.code(), ExitCode::peer_lost);
    return std::string("shared: ") + error.what();
  } catch (const PeerLost& error) {
    return std::string("own: ") + error.what();
  }
  return "no error";
}

// The store is there without worker 0. What the others leave in it does not disturb the next start.
TEST(World, NamesAWorkerZeroThatDoesNotShowUp) {
  AgentStore store;
  for (const char* round : {"first", "second"}) {
    std::vector<std::string> messages(2);
    std::vector<std::thread> threads;
    for (const int rank : {1, 2}) {
      threads.emplace_back([&, rank] {
        messages.at(static_cast<std::size_t>(rank - 1)) =
            end_of_worker(store.launch(rank, 3, round), 3s);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::string text = "worker 0 of 3 has not shown up within 3 s (parallel.timeout_s)";
    EXPECT_THAT(messages, ::testing::UnorderedElementsAre("own: " + text, "shared: " + text));
  }
  std::vector<std::thread> threads;
  for (const int rank : {0, 1, 2}) {
    threads.emplace_back([&, rank] {
      World world(store.launch(rank, 3, "third"),
                  {.timeout = 20s, .on_failure = unexpected_failure});
      EXPECT_EQ(world.gather("rank", rank), (std::vector<int>{0, 1, 2}));
      world.control().leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Where agents keep to a list of machines (static), they tell each other their workers there.
TEST(World, KnowsWhetherAgentsKeepAnOldStore) {
  for (const bool fixed : {false, true}) {
    AgentStore store;
    if (fixed) store.host().set("digits/torchelastic/role_info/0", std::string("{}"));
    std::vector<std::thread> threads;
    for (const int rank : {0, 1}) {
      threads.emplace_back([&, rank] {
        Launch launch = store.launch(rank, 2);
        launch.elastic_run = "digits";
        World world(launch, {.timeout = 20s, .on_failure = unexpected_failure});
        EXPECT_EQ(world.launch().elastic_run, fixed ? "" : "digits");
        world.control().leave();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(World, GivesUpOnAStoreThatIsNotThere) {
  try {
    World world(testing::launch_of(1, 2, testing::free_port()),
                {.timeout = 300ms, .on_failure = unexpected_failure});
    FAIL();
  } catch (const PeerLost& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("cannot reach the store at 127.0.0.1"));
  }
}

}  // namespace
}  // namespace decent
