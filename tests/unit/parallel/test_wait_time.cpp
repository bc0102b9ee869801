#include "decent/parallel/wait_time.h"

#include <gtest/gtest.h>

#include <thread>

#include "decent/parallel/decentralized_parameters.h"
#include "small_training.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

// A device whose stream takes its time: `now` is when the host has given it its work, `done` how
// far it has come.
struct Stream {
  double now = 0;
  double done = 0;
  int events = 0;
};

class StreamEvent : public TimedEvent {
 public:
  explicit StreamEvent(Stream& stream) : stream_(stream) { ++stream.events; }
  void record() override { time_ = stream_.now; }
  bool passed() override { return time_ <= stream_.done; }
  double seconds_since(TimedEvent& earlier) override {
    EXPECT_TRUE(passed());
    return time_ - static_cast<StreamEvent&>(earlier).time_;
  }

 private:
  Stream& stream_;
  double time_ = -1;
};

WaitTime on_stream(Stream& stream) {
  return WaitTime([&stream] { return std::make_unique<StreamEvent>(stream); });
}

TEST(WaitTime, IsTheThreadsWhereThereIsNoDevice) {
  WaitTime time([] { return nullptr; });
  time.measure([] { std::this_thread::sleep_for(20ms); });
  const double seconds = time.take_seconds();
  EXPECT_GE(seconds, 0.02);
  EXPECT_LT(seconds, 10);
  EXPECT_EQ(time.take_seconds(), 0);
}

TEST(WaitTime, IsTheStreamsOnceTheDeviceHasComeThere) {
  Stream stream;
  WaitTime time = on_stream(stream);
  const auto wait = [&](double seconds) {
    time.measure([&] { stream.now += seconds; });
    stream.now += 100;  // other work
  };
  wait(3);
  wait(5);
  EXPECT_EQ(time.take_seconds(), 0);  // under way
  stream.done = 50;
  EXPECT_EQ(time.take_seconds(), 3);
  stream.done = stream.now;
  EXPECT_EQ(time.take_seconds(), 5);
  EXPECT_EQ(time.take_seconds(), 0);
}

// Where nobody asks, too.
TEST(WaitTime, UsesEventsAgain) {
  Stream stream;
  WaitTime time = on_stream(stream);
  for (int step = 0; step < 50; ++step) {
    for (int bucket = 0; bucket < 3; ++bucket) time.measure([&] { stream.now += 1; });
    stream.done = stream.now - 3;  // a step behind
  }
  EXPECT_LE(stream.events, 2 * 2 * 3);
  stream.done = stream.now;
  EXPECT_EQ(time.take_seconds(), 150);
}

TEST(WaitTime, LeavesErrorsAlone) {
  Stream stream;
  WaitTime time = on_stream(stream);
  EXPECT_THROW(time.measure([] { throw PeerLost("gone"); }), PeerLost);
  stream.done = 1;
  EXPECT_EQ(time.take_seconds(), 0);
}

// One worker whose communicator has a device, and whose waits take the device 2 s each.
class OnDevice : public Communicator {
 public:
  explicit OnDevice(Stream& stream) : stream_(stream) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Pending all_reduce_sum(const at::Tensor&) override { return nullptr; }
  Pending broadcast(const at::Tensor& tensor, int root) override {
    return make_single_worker()->broadcast(tensor, root);
  }
  Pending exchange(const at::Tensor&, const at::Tensor&, int, int) override { return nullptr; }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>&) override { return nullptr; }
  void barrier() override {}
  std::unique_ptr<TimedEvent> timed_event(const at::Tensor& tensor) override {
    EXPECT_TRUE(tensor.defined());
    return std::make_unique<StreamEvent>(stream_);
  }

 private:
  Stream& stream_;
};

class SlowExchange : public Exchange {
 public:
  explicit SlowExchange(Stream& stream) : stream_(stream) {}
  void start(std::size_t, std::int64_t) override {}
  Mixing wait(std::size_t) override {
    stream_.now += 2;
    return {};
  }
  std::optional<Received> peek(std::size_t) override { return std::nullopt; }
  void settle() override {}
  void drop() override {}

 private:
  Stream& stream_;
};

TEST(WaitSeconds, AreThoseOfTheDevice) {
  Stream stream;
  testing::Options options = testing::good_options();
  options.exchange = [&](const ExchangeSetup&) { return std::make_unique<SlowExchange>(stream); };
  const at::Tensor w = testing::small_parameter();
  DecentralizedParameters parallel({{"w", w}}, {}, std::make_shared<OnDevice>(stream),
                                   std::move(options));
  for (int step = 0; step < 3; ++step) {
    w.sum().backward();
    EXPECT_EQ(parallel.take_wait_seconds(), step == 0 ? 0 : 2);  // the step before
    stream.done = stream.now;
  }
  EXPECT_EQ(parallel.take_wait_seconds(), 2);
}

}  // namespace
}  // namespace decent
