// Traced steps: what is recorded of buckets, and that nothing else changes.

#include "decent/core/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "decent/parallel/pending_work.h"
#include "training.h"

namespace decent {
namespace {

using nlohmann::json;
using testing::Settings;

struct Traced {
  testing::Models models;
  std::vector<json> traces;  // by rank
  std::size_t buckets = 0;
};

Traced train_traced(const Settings& settings, std::int64_t steps, std::int64_t first,
                    std::int64_t last) {
  const testing::Problem problem = testing::perceptron();
  Traced all;
  for (auto& [model, text, buckets] :
       testing::run_workers(settings.workers, [&](const testing::Worker& world) {
         std::vector<at::Tensor> x = problem.parameters();
         DecentralizedOptions options = settings.options();
         options.training.trace = std::make_shared<Trace>(
             TraceOptions{.first = first, .last = last, .rank = world->rank(), .file = {}});
         DecentralizedParameters parallel(testing::named(x), {}, world, options);
         for (std::int64_t t = 1; t <= steps; ++t) {
           options.training.trace->begin_step(t);
           problem.loss(x, world->rank(), t).backward();
         }
         const auto result = testing::copies(x);
         parallel.global_avg(false);
         return std::tuple(result, options.training.trace->json(), parallel.bucket_count());
       })) {
    all.models.push_back(model);
    all.traces.push_back(json::parse(text));
    all.buckets = buckets;
  }
  return all;
}

// Spans by name and step.
std::map<std::pair<std::string, std::int64_t>, json> spans_of(const json& trace) {
  std::map<std::pair<std::string, std::int64_t>, json> spans;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::pair key(event.at("name").get<std::string>(),
                        event.at("args").at("step").get<std::int64_t>());
    EXPECT_TRUE(spans.emplace(key, event).second) << event;
  }
  return spans;
}

TEST(TracedSteps, ChangeNoBit) {
  const Traced traced = train_traced(testing::of_three(), 6, 2, 4);
  testing::expect_same_bits(traced.models,
                            testing::train(testing::of_three(), testing::perceptron(), 6));
}

TEST(TracedSteps, HaveAWaitAnUpdateAndAnExchangeForEveryBucket) {
  const Traced traced = train_traced(testing::of_three(), 6, 2, 4);
  ASSERT_GT(traced.buckets, 1U);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    auto spans = spans_of(traced.traces[rank]);
    std::size_t expected = 0;
    for (std::int64_t t = 2; t <= 4; ++t) {
      // Phase 0 starts in steps 1, 3, 5; worker 1 has nobody to meet there.
      const bool meets = t % 2 == 0 || rank != 1;
      for (std::size_t b = 0; b < traced.buckets; ++b) {
        const std::string bucket = " bucket " + std::to_string(b);
        EXPECT_TRUE(spans.contains({"wait" + bucket, t}));
        EXPECT_TRUE(spans.contains({"mix+update" + bucket, t}));
        EXPECT_EQ(spans.contains({"exchange" + bucket, t}), meets);
        expected += meets ? 3 : 2;
        if (!meets) continue;
        const json arguments = spans[{"exchange" + bucket, t}].at("args");
        EXPECT_GT(arguments.at("bytes"), 0);
        EXPECT_EQ(arguments.contains("peer"), t % 2 == 1);
      }
    }
    EXPECT_EQ(spans.size(), expected);
  }
}

TEST(TracedSteps, AnExchangeEndsBeforeItsBucketIsMixed) {
  const Traced traced = train_traced(testing::of_three(), 6, 2, 5);
  auto spans = spans_of(traced.traces[0]);
  for (std::int64_t t = 2; t <= 4; ++t) {
    for (std::size_t b = 0; b < traced.buckets; ++b) {
      const std::string bucket = " bucket " + std::to_string(b);
      const json& exchange = spans[{"exchange" + bucket, t}];
      const auto end = exchange.at("ts").get<double>() + exchange.at("dur").get<double>();
      const json& before = spans[{"mix+update" + bucket, t}];
      const json& after = spans[{"mix+update" + bucket, t + 1}];
      EXPECT_GE(exchange.at("ts"), before.at("ts"));
      EXPECT_LE(end, after.at("ts").get<double>());
    }
  }
}

// An operation whose end the test decides.
class Controlled : public PendingWork {
 public:
  Controlled(std::shared_future<void> end, std::shared_ptr<int> waits)
      : end_(std::move(end)), waits_(std::move(waits)) {}
  void wait() override {
    end_.get();
    ++*waits_;
  }
  void wait_on_host() override { end_.get(); }
  bool done() override { return false; }

 private:
  std::shared_future<void> end_;
  std::shared_ptr<int> waits_;
};

TEST(WatchedWork, EndsBeforeAnybodyWaits) {
  Trace trace({});
  trace.begin_step(1);
  std::promise<void> end;
  const auto waits = std::make_shared<int>(0);
  const Pending work = watched(std::make_unique<Controlled>(end.get_future().share(), waits),
                               TraceSpan(&trace, exchange_lane(0), "exchange"));
  EXPECT_FALSE(work->done());
  EXPECT_TRUE(spans_of(json::parse(trace.json())).empty());
  end.set_value();
  while (!work->done()) std::this_thread::yield();
  EXPECT_EQ(spans_of(json::parse(trace.json())).size(), 1U);
  // The watching thread has left the stream alone, which is this thread's to make wait.
  EXPECT_EQ(*waits, 0);
  work->wait();
  work->wait();
  EXPECT_EQ(*waits, 2);
}

TEST(WatchedWork, ThrowsWhatTheOperationThrew) {
  Trace trace({});
  trace.begin_step(1);
  std::promise<void> end;
  const Pending work =
      watched(std::make_unique<Controlled>(end.get_future().share(), std::make_shared<int>(0)),
              TraceSpan(&trace, exchange_lane(0), "exchange"));
  end.set_exception(std::make_exception_ptr(PeerLost("gone")));
  EXPECT_THROW(work->wait(), PeerLost);
  EXPECT_THROW(work->wait(), PeerLost);
}

struct Left {};

TEST(TracedSteps, ALostPeerIsAnErrorOfTheTrainingThread) {
  const testing::Problem problem = testing::perceptron();
  const Settings settings{.workers = 2, .topology = make_topology("ring", 2, 1), .bucket_mb = 3e-4};
  const auto leave = [&](const testing::Worker& world) {
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedOptions options = settings.options();
    options.training.trace = std::make_shared<Trace>(
        TraceOptions{.first = 1, .last = 9, .rank = world->rank(), .file = {}});
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    const auto train_to = [&](std::int64_t last) {
      for (std::int64_t t = parallel.step() + 1; t <= last; ++t) {
        options.training.trace->begin_step(t);
        problem.loss(x, world->rank(), t).backward();
      }
    };
    train_to(3);
    if (world->rank() == 0) {
      EXPECT_THROW(train_to(5), PeerLost);
    }
    throw Left();
    return 0;
  };
  EXPECT_THROW(testing::run_workers(2, leave), Left);
}

}  // namespace
}  // namespace decent
