// The recording of a timeline: what is recorded, and the JSON that it is written as.

#include "decent/core/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::TemporaryFolder;

// Events of one phase ("X": spans, "M": metadata).
std::vector<json> events(const std::string& text, const std::string& phase) {
  std::vector<json> found;
  const json whole = json::parse(text);
  for (const json& event : whole.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

std::vector<std::string> names(const std::vector<json>& events) {
  std::vector<std::string> names;
  for (const json& event : events) names.push_back(event.at("name"));
  return names;
}

double end_of(const json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

TEST(Trace, RecordsWhatBeginsInItsSteps) {
  Trace trace({.first = 2, .last = 3, .file = {}});
  for (std::int64_t t = 1; t <= 4; ++t) {
    trace.begin_step(t);
    EXPECT_EQ(trace.on(), t == 2 || t == 3);
    const TraceSpan span(&trace, kTrainingLane, "", {.step = t});
  }
  EXPECT_THAT(names(events(trace.json(), "X")), ElementsAre("step 2", "step 3"));
}

TEST(Trace, NothingBeforeTheFirstStep) {
  Trace trace({});
  { const TraceSpan span(&trace, kDataLane, "early"); }
  EXPECT_TRUE(events(trace.json(), "X").empty());
}

TEST(Trace, ASpanThatEndsLaterIsRecordedOnceItEnds) {
  Trace trace({.first = 1, .last = 1, .file = {}});
  trace.begin_step(1);
  TraceSpan span(&trace, exchange_lane(0), "exchange");
  trace.begin_step(2);
  EXPECT_TRUE(events(trace.json(), "X").empty());
  EXPECT_TRUE(span.recording());
  span.end();
  span.end();
  EXPECT_FALSE(span.recording());
  const auto recorded = events(trace.json(), "X");
  ASSERT_EQ(recorded.size(), 1U);
  EXPECT_EQ(recorded[0].at("args").at("step"), 1);
}

TEST(Trace, WithoutATraceASpanIsNothing) {
  TraceSpan span(nullptr, kTrainingLane, "forward");
  EXPECT_FALSE(span.recording());
  span.end();
}

TEST(Trace, AMovedSpanIsRecordedOnce) {
  Trace trace({});
  trace.begin_step(1);
  {
    TraceSpan first(&trace, kTrainingLane, "moved");
    const TraceSpan second(std::move(first));
    EXPECT_TRUE(second.recording());
  }
  EXPECT_EQ(events(trace.json(), "X").size(), 1U);
}

TEST(Trace, SpansOfALaneNest) {
  Trace trace({});
  trace.begin_step(1);
  {
    const TraceSpan outer(&trace, kTrainingLane, "backward");
    { const TraceSpan inner(&trace, kTrainingLane, "wait", {.bucket = 0}); }
    { const TraceSpan inner(&trace, kTrainingLane, "wait", {.bucket = 1}); }
  }
  const auto spans = events(trace.json(), "X");
  ASSERT_THAT(names(spans), ElementsAre("backward", "wait bucket 0", "wait bucket 1"));
  EXPECT_LE(spans[0].at("ts"), spans[1].at("ts"));
  EXPECT_LE(end_of(spans[1]), spans[2].at("ts"));
  EXPECT_LE(end_of(spans[2]), end_of(spans[0]));
}

TEST(Trace, EventsSayWhereTheyBelong) {
  Trace trace({.first = 7, .last = 7, .rank = 3, .file = {}});
  trace.begin_step(7);
  {
    const TraceSpan span(&trace, exchange_lane(5), "exchange",
                         {.bucket = 5, .bytes = 1 << 20, .peer = 2});
  }
  { const TraceSpan span(&trace, kDataLane, "batch of", {.step = 9}); }
  const std::string text = trace.json();
  const auto spans = events(text, "X");
  ASSERT_THAT(names(spans), ElementsAre("exchange bucket 5", "batch of step 9"));
  const json expected = {{"step", 7}, {"bucket", 5}, {"bytes", 1 << 20}, {"peer", 2}};
  EXPECT_EQ(spans[0].at("args"), expected);
  EXPECT_EQ(spans[1].at("args"), (json{{"step", 9}}));
  EXPECT_EQ(spans[0].at("pid"), 4);  // never 0
  std::map<int, std::string> lanes;
  for (const json& event : events(text, "M")) {
    EXPECT_EQ(event.at("pid"), 4);
    if (event.at("name") == "thread_name") lanes[event.at("tid")] = event.at("args").at("name");
    if (event.at("name") == "process_name") {
      EXPECT_THAT(event.at("args").at("name").get<std::string>(),
                  ::testing::StartsWith("rank 3 ("));
    }
  }
  EXPECT_EQ(lanes[spans[0].at("tid")], "exchange of bucket 5");
  EXPECT_EQ(lanes[spans[1].at("tid")], "reading data");
}

// Two recordings of one machine can be laid side by side, to a microsecond or so.
TEST(Trace, TimesAreThoseOfTheWallClock) {
  const auto micros = [] {
    return std::chrono::duration<double, std::micro>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  Trace trace({});
  trace.begin_step(1);
  const double before = micros();
  { const TraceSpan span(&trace, kTrainingLane, "now"); }
  const double after = micros();
  const json whole = json::parse(trace.json());
  const double origin = whole.at("baseTimeNanoseconds").get<double>() / 1e3;
  const auto spans = events(trace.json(), "X");
  EXPECT_NEAR(origin + spans[0].at("ts").get<double>(), (before + after) / 2, 5e4);
  EXPECT_LT(spans[0].at("ts").get<double>(), 9e12);  // a double holds its nanoseconds
  EXPECT_GE(spans[0].at("dur").get<double>(), 0.001);
}

TEST(Trace, ThreadsMayRecordAtOnce) {
  Trace trace({});
  trace.begin_step(1);
  std::vector<std::thread> threads;
  for (std::size_t bucket = 0; bucket < 8; ++bucket) {
    threads.emplace_back([&trace, bucket] {
      for (int i = 0; i < 500; ++i) {
        const TraceSpan span(&trace, exchange_lane(bucket), "exchange",
                             {.bucket = static_cast<std::int64_t>(bucket)});
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(json::parse(trace.json()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(events(trace.json(), "X").size(), 4000U);
}

TEST(Trace, IsWrittenAfterTheStepThatFollowsTheLast) {
  const TemporaryFolder folder;
  write_file(folder / "trace.json", "an older one");
  Trace trace({.first = 1, .last = 2, .file = folder / "trace.json"});
  for (std::int64_t t = 1; t <= 2; ++t) {
    trace.begin_step(t);
    { const TraceSpan span(&trace, kTrainingLane, "", {.step = t}); }
    trace.end_step();
    EXPECT_EQ(read_text(folder / "trace.json"), "an older one");
  }
  trace.begin_step(3);
  trace.end_step();
  EXPECT_EQ(events(read_text(folder / "trace.json"), "X").size(), 2U);
  write_file(folder / "trace.json", "untouched");
  trace.begin_step(4);
  trace.end_step();
  trace.finish();
  EXPECT_EQ(read_text(folder / "trace.json"), "untouched");
}

TEST(Trace, FinishWritesWhatThereIs) {
  const TemporaryFolder folder;
  Trace trace({.first = 1, .last = 9, .file = folder / "trace.json"});
  trace.begin_step(1);
  TraceSpan late(&trace, exchange_lane(0), "exchange");
  { const TraceSpan span(&trace, kTrainingLane, "forward"); }
  trace.finish();
  EXPECT_THAT(names(events(read_text(folder / "trace.json"), "X")), ElementsAre("forward"));
  EXPECT_FALSE(trace.on());
}

TEST(Trace, NothingIsWrittenWithoutAStepInRange) {
  const TemporaryFolder folder;
  Trace trace({.first = 5, .last = 6, .file = folder / "trace.json"});
  trace.begin_step(1);
  trace.finish();
  EXPECT_FALSE(std::filesystem::exists(folder / "trace.json"));
}

TEST(Trace, WhatCannotBeWrittenIsAWriteError) {
  const TemporaryFolder folder;
  Trace trace({.file = folder.path() / "no" / "trace.json"});
  trace.begin_step(1);
  EXPECT_THROW(trace.finish(), WriteError);
}

}  // namespace
}  // namespace decent
