#include "decent/comm/control/links.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/comm/control/control_frames.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

std::pair<Socket, Socket> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

// Links of worker 0 to workers 1 and 2, whose ends of the connections the test holds.
class LinksTest : public ::testing::Test {
 protected:
  LinksTest() : links_(connections(), events()) {}

  std::vector<Socket> connections() {
    std::vector<Socket> own(3);
    for (std::size_t rank : {1U, 2U}) std::tie(own[rank], peers_[rank]) = socket_pair();
    return own;
  }

  // Everything that happens, as one line.
  LinkEvents events() {
    return {.frame =
                [this](std::size_t rank, std::string_view content) {
                  seen_ += "frame " + std::string(content) + " of " + std::to_string(rank) + "; ";
                },
            .heard = [this](std::size_t rank) { seen_ += "heard " + std::to_string(rank) + "; "; },
            .ended =
                [this](std::size_t rank, int error) {
                  seen_ += "ended " + std::to_string(rank) + " " + std::to_string(error) + "; ";
                }};
  }

  void write(std::size_t rank, const std::string& bytes) const {
    ASSERT_EQ(::write(peers_[rank].descriptor(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  // Everything that has come to a peer.
  std::string read(std::size_t rank) const {
    std::string all;
    std::array<char, 4096> bytes{};
    for (;;) {
      const ssize_t count = ::read(peers_[rank].descriptor(), bytes.data(), bytes.size());
      if (count <= 0) return all;
      all.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }

  std::string seen() { return std::exchange(seen_, ""); }

  std::array<Socket, 3> peers_;
  std::string seen_;
  Links links_;
};

TEST_F(LinksTest, HandOnWholeFramesInTheirOrder) {
  const std::string first = frames::cap(12);
  const std::string second = frames::leave();
  write(2, first + second.substr(0, 2));
  EXPECT_FALSE(links_.listen(1s));
  EXPECT_EQ(seen(), "frame C12 of 2; heard 2; ");
  write(2, second.substr(2));
  write(1, first);
  links_.listen(1s);
  EXPECT_EQ(seen(), "frame C12 of 1; heard 1; frame L of 2; heard 2; ");
}

TEST_F(LinksTest, HearBytesThatMakeNoFrameWhole) {
  write(1, frames::leave().substr(0, 1));
  links_.listen(1s);
  EXPECT_EQ(seen(), "heard 1; ");
}

// What a peer said last counts, also where it has gone since.
TEST_F(LinksTest, TellOfAnEndOnceAndAfterTheLastFrame) {
  write(1, frames::leave());
  peers_[1].close();
  links_.listen(1s);
  EXPECT_EQ(seen(), "frame L of 1; heard 1; ended 1 0; ");
  links_.listen(10ms);
  EXPECT_EQ(seen(), "");
}

TEST_F(LinksTest, TellWhyAConnectionBroke) {
  links_.send_to_all(frames::leave());
  peers_[2].close();  // with bytes that it has not read: a reset
  links_.listen(1s);
  EXPECT_EQ(seen(), "ended 2 " + std::to_string(ECONNRESET) + "; ");
}

TEST_F(LinksTest, SendToAllPeers) {
  links_.send_to_all(frames::cap(3));
  links_.offer_to_all(frames::leave());
  EXPECT_EQ(read(1), frames::cap(3) + frames::leave());
  EXPECT_EQ(read(2), frames::cap(3) + frames::leave());
  EXPECT_FALSE(links_.has_unsent());
}

// The kernel takes some; the rest goes out as the peer reads, and nothing that is only offered
// joins it meanwhile.
TEST_F(LinksTest, KeepWhatAPeerDoesNotTakeYet) {
  const std::string large = frames::given({"topic", std::string(3'000'000, 'x')});
  links_.send_to_all(large);
  links_.offer_to_all(frames::leave());
  EXPECT_TRUE(links_.has_unsent());
  std::array<std::string, 3> received;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (links_.has_unsent() && std::chrono::steady_clock::now() < deadline) {
    for (std::size_t rank : {1U, 2U}) received[rank] += read(rank);
    links_.listen(10ms);
  }
  for (std::size_t rank : {1U, 2U}) EXPECT_TRUE(received[rank] + read(rank) == large) << rank;
}

TEST_F(LinksTest, HaveNothingUnsentForThoseThatAreGone) {
  links_.send_to_all(frames::given({"topic", std::string(3'000'000, 'x')}));
  peers_[1].close();
  peers_[2].close();
  links_.listen(1s);
  EXPECT_FALSE(links_.has_unsent());
}

TEST_F(LinksTest, ListenNoLongerThanTheyMay) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(links_.listen(50ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
  EXPECT_EQ(seen(), "");
}

TEST_F(LinksTest, AreWoken) {
  const auto begin = std::chrono::steady_clock::now();
  links_.wake();  // before: the next listen() ends
  links_.listen(60s);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    links_.wake();
  });
  links_.listen(60s);
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  // Both wakes are used up.
  const auto rest = std::chrono::steady_clock::now();
  links_.listen(50ms);
  EXPECT_GE(std::chrono::steady_clock::now() - rest, 50ms);
}

TEST_F(LinksTest, WatchAnotherDescriptor) {
  auto [watched, other] = socket_pair();
  EXPECT_FALSE(links_.listen(10ms, watched.descriptor()));
  write(1, frames::leave());
  EXPECT_FALSE(links_.listen(1s, watched.descriptor()));
  other.close();
  EXPECT_TRUE(links_.listen(1s, watched.descriptor()));
}

}  // namespace
}  // namespace decent
