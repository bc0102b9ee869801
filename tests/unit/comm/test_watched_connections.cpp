#include "decent/comm/watched_connections.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "../support/idle_communicator.h"
#include "decent/comm/by_place.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

TEST(Watch, LeavesAloneWhatIsInTime) {
  std::atomic<int> late = 0;
  int done = 0;
  watch(
      60s, [&] { ++late; }, [&] { ++done; });
  EXPECT_EQ(done, 1);
  EXPECT_THROW(watch(
                   60s, [&] { ++late; }, [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(late, 0);
}

TEST(Watch, TellsWhatIsTooLateWhileItStillRuns) {
  std::promise<std::thread::id> told;
  std::thread::id by;
  watch(
      1ms, [&] { told.set_value(std::this_thread::get_id()); },
      [&] { by = told.get_future().get(); });  // which would wait for ever without it
  EXPECT_NE(by, std::this_thread::get_id());
}

class Event : public TimedEvent {
 public:
  void record() override {}
  bool passed() override { return true; }
  double seconds_since(TimedEvent&) override { return 0; }
};

// Counts what makes connections.
class Connects : public testing::IdleCommunicator {
 public:
  explicit Connects(int& pairs) : pairs_(pairs) {}
  std::shared_ptr<Communicator> subgroup(const std::vector<int>&) override {
    return std::make_shared<Connects>(pairs_);
  }
  std::unique_ptr<TimedEvent> timed_event(const at::Tensor&) override {
    return std::make_unique<Event>();
  }
  void connect_pairs(const std::vector<int>& peers) override {
    pairs_ += static_cast<int>(peers.size());
  }

 private:
  int& pairs_;
};

TEST(WatchedConnections, AreAllThatAGroupMakesLater) {
  int watched = 0;
  int pairs = 0;
  const auto group = watch_connections([&] { return std::make_shared<Connects>(pairs); },
                                       [&](const std::function<void()>& step) {
                                         ++watched;
                                         step();
                                       });
  EXPECT_EQ(watched, 1);
  const auto inner = group->subgroup({0, 1})->subgroup({0, 1});
  EXPECT_EQ(watched, 3);
  inner->connect_pairs({1, 2, 3});
  EXPECT_EQ(watched, 4);
  EXPECT_EQ(pairs, 3);
  inner->all_reduce_sum({});
  inner->barrier();
  EXPECT_EQ(watched, 4);
  // What has a default is the group's, too.
  EXPECT_NE(inner->timed_event({}), nullptr);
}

TEST(ByPlace, TimesTheDeviceOfAll) {
  int pairs = 0;
  const auto all = std::make_shared<Connects>(pairs);
  const auto world = by_place(all, all->subgroup({0, 1}), {0, 1});
  EXPECT_NE(world->timed_event({}), nullptr);
}

}  // namespace
}  // namespace decent
