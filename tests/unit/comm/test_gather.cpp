// What the control plane carries for all workers, and what it makes of the launcher's end.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "control_workers.h"
#include "decent/comm/control/gather_box.h"
#include "decent/comm/lost_workers.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::connect_all;
using testing::ControlledWorker;
using ::testing::HasSubstr;
using testing::make_workers;

// ---- gather ---------------------------------------------------------------------------------

using Texts = std::vector<std::string>;

TEST(Gather, GivesEveryoneWhatAllGave) {
  auto workers = make_workers(3);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50;
           ++round) {  // the same topic again: calls are matched in order
        const std::string suffix = std::to_string(round);
        EXPECT_EQ(workers[i].control->gather("topic", std::to_string(i) + ":" + suffix),
                  (Texts{"0:" + suffix, "1:" + suffix, "2:" + suffix}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// As the thread that writes a checkpoint does beside the one that trains.
TEST(Gather, KeepsTopicsOfTwoThreadsApart) {
  auto workers = make_workers(2);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::string topic : {"a", "b"}) {
      threads.emplace_back([&, i, topic] {
        for (int round = 0; round < 200; ++round) {
          const Texts all = workers[i].control->gather(topic, topic + std::to_string(round));
          EXPECT_EQ(all, Texts(2, topic + std::to_string(round)));
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// Worker 1 has given its bytes and is lost. Worker 2 may have left this gather out.
TEST(Gather, IsGivenUpUnlessAllHaveGivenBeforeALoss) {
  GatherBox box(3);
  for (const std::size_t rank : {0U, 1U}) box.give(rank, "all", std::to_string(rank));
  box.lose(1);
  EXPECT_THROW(box.take("all"), GivenUp);
  box.give(2, "all", "2");
  EXPECT_EQ(box.take("all"), (Texts{"0", "1", "2"}));
}

// A worker may leave as soon as it has what it wants: its own part is sent first, however long.
TEST(Gather, SendsAllBeforeTheGoodbye) {
  auto workers = make_workers(2);
  const std::string large(20'000'000, 'x');
  std::thread other([&] {
    EXPECT_EQ(workers[1].control->gather("large", "y").front(), large);
    workers[1].control->leave();
  });
  EXPECT_EQ(workers[0].control->gather("large", large).back(), "y");
  workers[0].control->leave();
  other.join();
}

TEST(Gather, NamesAWorkerThatLeftBeforeItGaveItsOwn) {
  auto workers = make_workers(3);
  workers[2].control->leave();
  std::thread other([&] { EXPECT_THROW(workers[1].control->gather("saved", ""), PeerLost); });
  try {
    workers[0].control->gather("saved", "");
    ADD_FAILURE() << "no error";
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "worker 2 has ended before 'saved'");
  }
  other.join();
}

TEST(Gather, EndsWithWhatTheRunFailedWith) {
  auto workers = make_workers(2);
  std::thread other([&] { workers[1].control.reset(); });
  try {
    workers[0].control->gather("saved", "");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::peer_lost);
    EXPECT_THAT(error.what(), HasSubstr("lost worker 1"));
  }
  other.join();
}

TEST(Gather, TellsWhenAWorkerHasLeft) {
  auto workers = make_workers(2);
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] { workers[0].control->leave(); });
  workers[1].control->wait_until_left(0, 20s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  other.join();
}

// ---- the launcher's end ---------------------------------------------------------------------

// A pipe stands for the launcher's process: it becomes readable when its other end is closed.
struct FakeLauncher {
  FakeLauncher() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    watched = Socket(ends[0]);
    process = Socket(ends[1]);
  }
  Socket watched;
  Socket process;
};

std::deque<ControlledWorker> workers_of_launcher(FakeLauncher& launcher) {
  auto sockets = connect_all(2);
  std::deque<ControlledWorker> workers(2);
  for (std::size_t i = 0; i < 2; ++i) {
    workers[i].control = std::make_unique<Control>(ControlOptions{
        .rank = static_cast<int>(i),
        .hosts = {"a", "b"},
        .connections = std::move(sockets[i]),
        .timeout = 20s,
        .on_failure = [&verdict = workers[i].verdict](
                          const Failure& failure, bool reports) { verdict.set(failure, reports); },
        .launcher = i == 1 ? LauncherWatch{.ended = std::move(launcher.watched), .name = "torchrun"}
                           : LauncherWatch{.name = "torchrun"}});
  }
  return workers;
}

TEST(LauncherEnd, StopsAllWorkersAfterTheSameStep) {
  FakeLauncher launcher;
  auto workers = workers_of_launcher(launcher);
  for (ControlledWorker& worker : workers) worker.control->on_launcher_end(LauncherEnd::stop);
  EXPECT_TRUE(workers[0].control->begin_step(5));
  EXPECT_TRUE(workers[1].control->begin_step(4));
  launcher.process.close();
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(workers[1].control->begin_step(5));
  for (ControlledWorker& worker : workers) {
    EXPECT_FALSE(worker.control->begin_step(6));
    EXPECT_EQ(worker.control->stop().last_step, 5);
    EXPECT_EQ(worker.control->stop().cause(), "the end of torchrun (seen by worker 1)");
  }
  // The launcher's own SIGTERM may have come before: its end is no second signal, which would end
  // the run at once.
  for (ControlledWorker& worker : workers) worker.control->leave();
}

TEST(LauncherEnd, MeansWhatIsSaidLater) {
  FakeLauncher launcher;
  auto workers = workers_of_launcher(launcher);
  launcher.process.close();
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(workers[1].control->begin_step(1));
  workers[1].control->on_launcher_end(LauncherEnd::fail);
  for (ControlledWorker& worker : workers) {
    ASSERT_TRUE(worker.verdict.wait());
    EXPECT_EQ(worker.verdict.failure().code, ExitCode::stopped);
    EXPECT_THAT(worker.verdict.failure().message, HasSubstr("torchrun, which started this"));
  }
}

}  // namespace
}  // namespace decent
