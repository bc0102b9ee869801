#include "decent/comm/control/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <random>
#include <thread>

#include "control_workers.h"
#include "decent/comm/control/control_frames.h"
#include "decent/comm/mesh.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::connect_all;
using testing::ControlledWorker;
using ::testing::HasSubstr;
using testing::make_control;
using testing::make_workers;
using testing::Verdict;

TEST(Control, NamesTheWorkerThatIsGone) {
  for (std::size_t gone = 0; gone < 3; ++gone) {
    auto workers = make_workers(3, 2s);
    workers[gone].control->report(Operation::evaluating);
    EXPECT_TRUE(workers[gone].control->begin_step(7));
    std::this_thread::sleep_for(600ms);  // two beats
    workers[gone].control.reset();
    int reports = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == gone) continue;
      ASSERT_TRUE(workers[i].verdict.wait());
      const Failure failure = workers[i].verdict.failure();
      EXPECT_EQ(failure.code, ExitCode::peer_lost);
      EXPECT_EQ(failure.rank, static_cast<int>(gone));
      EXPECT_TRUE(failure.lost);
      const std::string name = std::to_string(gone);
      EXPECT_THAT(failure.message, HasSubstr("lost worker " + name + " on 'node" + name +
                                             "': its connection closed"));
      EXPECT_THAT(failure.message, HasSubstr("in step 7, evaluating"));
      reports += workers[i].verdict.reports() ? 1 : 0;
    }
    EXPECT_EQ(reports, 1);
  }
}

// Worker 1 dies; worker 0 sees it, tells, and closes its connections. Worker 2 has not looked yet
// and finds both gone.
TEST(Control, NamesWhoWentFirstWhateverComesFirst) {
  auto sockets = connect_all(3);
  Verdict of_0, of_2;
  sockets[1].clear();
  make_control(0, std::move(sockets[0]), of_0, 20s)->fail_after_loss({});
  EXPECT_EQ(of_0.failure().rank, 1);
  const auto late = make_control(2, std::move(sockets[2]), of_2, 20s);
  ASSERT_TRUE(of_2.wait());
  EXPECT_EQ(of_2.failure().rank, 1);
  EXPECT_TRUE(of_2.failure().lost);
}

TEST(Control, GivesUpOnASilentWorker) {
  auto sockets = connect_all(3);
  const auto silent = std::move(sockets[1]);  // open, but nobody talks
  Verdict of_0, of_2;
  const auto begin = std::chrono::steady_clock::now();
  const auto first = make_control(0, std::move(sockets[0]), of_0, 500ms);
  const auto third = make_control(2, std::move(sockets[2]), of_2, 500ms);
  ASSERT_TRUE(of_0.wait());
  ASSERT_TRUE(of_2.wait());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 450ms);
  for (Verdict* verdict : {&of_0, &of_2}) {
    EXPECT_EQ(verdict->failure().rank, 1);
    EXPECT_THAT(verdict->failure().message, HasSubstr("silent for 0.5 s (parallel.timeout_s)"));
  }
}

// The machine of workers 0 and 1 is cut off, and 1's last beat came later: 2 must not leave it to 1
// to tell the user.
TEST(Control, OneTellsOnEachSideOfACutCable) {
  auto sockets = connect_all(4);
  const auto cut_off = std::pair(std::move(sockets[0]), std::move(sockets[1]));
  std::deque<ControlledWorker> workers(4);
  for (int rank : {2, 3}) {
    ControlledWorker& worker = workers[static_cast<std::size_t>(rank)];
    worker.control = make_control(rank, std::move(sockets[static_cast<std::size_t>(rank)]),
                                  worker.verdict, 0.6s);
  }
  std::this_thread::sleep_for(150ms);
  const std::string beat = frames::beat({.step = 1, .turn = 1, .operation = Operation::forward});
  for (const std::size_t peer : {2U, 3U}) {
    EXPECT_EQ(::write(cut_off.second[peer].descriptor(), beat.data(), beat.size()),
              static_cast<ssize_t>(beat.size()));
  }
  for (const std::size_t rank : {2U, 3U}) {
    Verdict& verdict = workers[rank].verdict;
    ASSERT_TRUE(verdict.wait());
    EXPECT_TRUE(verdict.failure().lost);
    EXPECT_EQ(verdict.failure().rank, 0);
    EXPECT_EQ(verdict.reports(), rank == 2) << rank;
  }
}

TEST(Control, KeepsAQuietRunAlive) {
  auto workers = make_workers(4, 200ms);
  for (ControlledWorker& worker : workers) EXPECT_FALSE(worker.verdict.wait(250ms));
  for (ControlledWorker& worker : workers) worker.control->leave();
}

TEST(Control, TellsAFailureToAll) {
  auto workers = make_workers(3);
  workers[2].control->fail({.code = ExitCode::diverged, .rank = 2, .message = "two\nlines"});
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(workers[i].verdict.wait());
    EXPECT_EQ(workers[i].verdict.failure().code, ExitCode::diverged);
    EXPECT_EQ(workers[i].verdict.failure().rank, 2);
    EXPECT_FALSE(workers[i].verdict.failure().lost);
    EXPECT_EQ(workers[i].verdict.failure().message, "two\nlines");
    EXPECT_EQ(workers[i].verdict.reports(), i == 0);
  }
}

TEST(Control, FailsByItselfWhereNobodyWasLost) {
  auto workers = make_workers(2);
  workers[1].control->fail_after_loss(
      {.code = ExitCode::peer_lost, .rank = 1, .message = "exchange failed"});
  ASSERT_TRUE(workers[0].verdict.wait());
  EXPECT_EQ(workers[0].verdict.failure().message, "exchange failed");
}

TEST(Control, ForgivesThoseThatSayGoodbye) {
  auto workers = make_workers(3);
  workers[0].control->leave();
  workers[0].control.reset();
  EXPECT_FALSE(workers[1].verdict.wait(200ms));
  workers[2].control->leave();
  EXPECT_FALSE(workers[1].verdict.wait(200ms));
  workers[1].control->leave();
}

// Steps as training couples them: worker i cannot end step t before its neighbours have ended t
// - 1.
class Coupling {
 public:
  explicit Coupling(std::size_t workers) : done_(workers, 0) {}
  void finish(std::size_t worker, std::int64_t t) {
    std::unique_lock lock(mutex_);
    const std::size_t n = done_.size();
    const std::size_t left = (worker + n - 1) % n, right = (worker + 1) % n;
    const bool in_time =
        changed_.wait_for(lock, 10s, [&] { return done_[left] >= t - 1 && done_[right] >= t - 1; });
    EXPECT_TRUE(in_time) << "worker " << worker << " waits for ever in step " << t;
    done_[worker] = t;
    changed_.notify_all();
  }
  std::vector<std::int64_t> done() const { return done_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> done_;
};

TEST(Control, StopsAllAfterTheSameStep) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    constexpr std::size_t kWorkers = 5;
    auto workers = make_workers(kWorkers);
    Coupling coupling(kWorkers);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937 random(seed * 100 + static_cast<unsigned>(i));
        for (std::int64_t t = 1; workers[i].control->begin_step(t); ++t) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
          coupling.finish(i, t);
        }
      });
    }
    std::mt19937 random(seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    workers[seed % kWorkers].control->request_stop(SIGTERM);
    if (seed % 3 == 0) workers[(seed + 1) % kWorkers].control->request_stop(SIGINT);
    for (std::thread& thread : threads) thread.join();
    const auto done = coupling.done();
    const std::int64_t last = workers[0].control->stop().last_step;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      EXPECT_EQ(done[i], last) << "worker " << i << ", seed " << seed;
      EXPECT_EQ(workers[i].control->stop().last_step, last);
    }
    for (ControlledWorker& worker : workers) worker.control->leave();
  }
}

TEST(Control, StopBeforeTheFirstStep) {
  auto workers = make_workers(2);
  workers[1].control->request_stop(SIGUSR1);
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(workers[0].control->begin_step(1));
  EXPECT_EQ(workers[0].control->stop().last_step, 0);
  EXPECT_EQ(workers[0].control->stop().rank, 1);
  EXPECT_EQ(workers[0].control->stop().cause(), "SIGUSR1 to worker 1");
  for (ControlledWorker& worker : workers) worker.control->leave();
}

// A worker that is gone cannot agree to stop: it counts as lost, not as stopped.
TEST(Control, LossOutranksAStop) {
  auto workers = make_workers(3);
  for (ControlledWorker& worker : workers) EXPECT_TRUE(worker.control->begin_step(1));
  workers[1].control.reset();
  workers[0].control->request_stop(SIGTERM);
  workers[2].control->request_stop(SIGTERM);
  for (std::size_t i : {0, 2}) {
    ASSERT_TRUE(workers[i].verdict.wait());
    EXPECT_EQ(workers[i].verdict.failure().code, ExitCode::peer_lost);
    EXPECT_EQ(workers[i].verdict.failure().rank, 1);
  }
}

TEST(Control, ASecondSignalIsImpatience) {
  auto workers = make_workers(2);
  EXPECT_TRUE(workers[0].control->begin_step(1));
  workers[0].control->request_stop(SIGTERM);
  workers[0].control->request_stop(SIGTERM);  // launchers send it twice at once
  EXPECT_FALSE(workers[1].verdict.wait(500ms));
  std::this_thread::sleep_for(2600ms);
  workers[0].control->request_stop(SIGTERM);
  for (ControlledWorker& worker : workers) {
    ASSERT_TRUE(worker.verdict.wait());
    EXPECT_EQ(worker.verdict.failure().code, ExitCode::stopped);
  }
}

TEST(Mesh, ConnectsAllAndDropsConnectionsWithoutTheToken) {
  constexpr int kWorkers = 4;
  std::vector<Socket> listeners;
  std::vector<Endpoint> endpoints;
  for (int i = 0; i < kWorkers; ++i) {
    listeners.push_back(listen_on("127.0.0.1"));
    endpoints.push_back({"127.0.0.1", port_of(listeners.back())});
  }
  const Deadline deadline = std::chrono::steady_clock::now() + 10s;
  const Socket stranger = connect_to(endpoints[0], deadline);
  send_all(stranger, std::string("GET / HTTP/1.1\r\n\r\n0000000000"), deadline);
  std::vector<std::vector<Socket>> sockets(kWorkers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&, i] {
      const auto own = static_cast<std::size_t>(i);
      sockets[own] = connect_mesh(i, endpoints, listeners[own], "token", deadline);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kWorkers; ++i) {
    for (std::size_t j = 0; j < kWorkers; ++j) {
      ASSERT_EQ(sockets[i][j].open(), i != j);
      if (i < j) send_all(sockets[i][j], std::string(1, static_cast<char>('a' + i)), deadline);
    }
  }
  for (std::size_t i = 0; i < kWorkers; ++i) {
    for (std::size_t j = i + 1; j < kWorkers; ++j) {
      std::string letter(1, '\0');
      receive_all(sockets[j][i], letter, deadline);
      EXPECT_EQ(letter[0], static_cast<char>('a' + i));
    }
  }
}

TEST(Mesh, NamesWhoCannotBeReached) {
  Socket gone = listen_on("127.0.0.1");
  const std::vector<Endpoint> endpoints = {{"127.0.0.1", port_of(gone)}, {"127.0.0.1", 1}};
  gone.close();
  const Socket own = listen_on("127.0.0.1");
  const Deadline soon = std::chrono::steady_clock::now() + 200ms;
  EXPECT_THROW(
      {
        try {
          connect_mesh(1, endpoints, own, "token", soon);
        } catch (const PeerLost& error) {
          EXPECT_THAT(error.what(), HasSubstr("worker 1 cannot connect to worker 0 at 127.0.0.1:"));
          EXPECT_THAT(error.what(), HasSubstr("refused"));
          throw;
        }
      },
      PeerLost);
  EXPECT_THROW(
      {
        try {
          connect_mesh(0, endpoints, own, "token", soon);
        } catch (const PeerLost& error) {
          EXPECT_THAT(error.what(), HasSubstr("worker 0 was not reached by worker 1"));
          throw;
        }
      },
      PeerLost);
}

}  // namespace
}  // namespace decent
