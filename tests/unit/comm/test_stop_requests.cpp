// What signals and the end of a launcher ask for, on a clock that the tests move.

#include "decent/comm/control/stop_requests.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <csignal>

namespace decent {
namespace {

using namespace std::chrono_literals;

constexpr StopRequests::Clock::time_point kNow{100s};

TEST(StopRequests, AreNoneAtFirst) {
  StopRequests requests{WatchedLauncher()};
  EXPECT_FALSE(requests.take(kNow));
  EXPECT_EQ(requests.launcher(), -1);
}

TEST(StopRequests, AskOnceForASignal) {
  StopRequests requests{WatchedLauncher()};
  requests.note_signal(SIGTERM);
  const auto request = requests.take(kNow);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->signal, SIGTERM);
  EXPECT_FALSE(request->at_once);
  EXPECT_FALSE(requests.take(kNow));
}

TEST(StopRequests, PassOverASecondSignalThatComesSoon) {
  StopRequests requests{WatchedLauncher()};
  requests.note_signal(SIGTERM);
  requests.note_signal(SIGTERM);  // both before anyone looks
  EXPECT_FALSE(requests.take(kNow)->at_once);
  EXPECT_FALSE(requests.take(kNow));
  requests.note_signal(SIGINT);
  EXPECT_FALSE(requests.take(kNow + 2999ms));
}

TEST(StopRequests, AskToStopAtOnceForALateSecondSignal) {
  StopRequests requests{WatchedLauncher()};
  requests.note_signal(SIGTERM);
  requests.take(kNow);
  requests.note_signal(SIGINT);
  const auto request = requests.take(kNow + 3s);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->at_once);
  EXPECT_EQ(request->message(), "stopped at once by a second signal (SIGINT)");
}

class LauncherRequests : public ::testing::Test {
 protected:
  static Socket launcher() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    const Socket other(ends[1]);
    return Socket(ends[0]);
  }
  StopRequests requests_{{.end = launcher(), .name = "mpirun"}};
};

TEST_F(LauncherRequests, AskWhatTheEndMeans) {
  EXPECT_GE(requests_.launcher(), 0);
  requests_.on_launcher_end(LauncherEnd::stop);
  EXPECT_FALSE(requests_.take(kNow));
  requests_.note_launcher_end();
  EXPECT_EQ(requests_.launcher(), -1);  // watched no more
  const auto request = requests_.take(kNow);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->signal, 0);
  EXPECT_FALSE(request->at_once);
  EXPECT_FALSE(requests_.take(kNow));
}

TEST_F(LauncherRequests, WaitForTheMeaningOfAnEndThatWas) {
  requests_.note_launcher_end();
  EXPECT_FALSE(requests_.take(kNow));
  requests_.on_launcher_end(LauncherEnd::fail);
  const auto request = requests_.take(kNow);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->at_once);
  EXPECT_EQ(request->message(), "mpirun, which started this program, has ended");
}

// Neither is a second signal to the other.
TEST_F(LauncherRequests, StandBesideSignals) {
  requests_.on_launcher_end(LauncherEnd::stop);
  requests_.note_launcher_end();
  requests_.note_signal(SIGTERM);
  EXPECT_EQ(requests_.take(kNow)->signal, SIGTERM);
  EXPECT_EQ(requests_.take(kNow + 10s)->signal, 0);
  EXPECT_FALSE(requests_.take(kNow + 20s));
}

}  // namespace
}  // namespace decent
