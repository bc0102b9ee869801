#include "decent/runfolder/run_file.h"

#include <gmock/gmock.h>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::refusal;

StartEntry start_with(int workers, std::int64_t step) {
  StartEntry start{
      .time = "2026-01-02 03:04:05",
      .program = "0.1.0 (build x)",
      .run = "a1b2",
      .step = step,
      .workers = workers,
      .lines = {{"model", "a\xff \"b\".pt"}, {"output", "runs/x"}},
  };
  if (workers == 3) start.phases = {{{0, 1}, {2}}, {{0}, {1, 2}}};
  return start;
}

TEST(RunFile, KeepsEveryStartAndSaysWhatChanged) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "run.json";
  EXPECT_THAT(read_run_file(file).starts, IsEmpty());
  EXPECT_EQ(add_start(file, start_with(3, 0), false, {{"lr", "1"}, {"gone", "x"}, {"seed", "0"}},
                      {{"lr", "1"}}),
            "");
  EXPECT_EQ(add_start(file, start_with(2, 500), true, {{"lr", "2"}, {"new", "y"}, {"seed", "0"}},
                      {{"lr", "1"}, {"new", "z"}}),
            "");
  const RunFile run = read_run_file(file);
  EXPECT_THAT(run.facts, ElementsAre(Pair("lr", "2"), Pair("new", "y"), Pair("seed", "0")));
  EXPECT_THAT(run.defaults, ElementsAre(Pair("lr", "1"), Pair("new", "z")));
  ASSERT_EQ(run.starts.size(), 2U);
  const StartEntry& first = run.starts[0];
  EXPECT_EQ(first.run, "a1b2");
  EXPECT_EQ(first.workers, 3);
  EXPECT_EQ(first.phases, start_with(3, 0).phases);
  EXPECT_THAT(first.lines, ElementsAre(Pair("model", "a\xef\xbf\xbd \"b\".pt"),  // not UTF-8
                                       Pair("output", "runs/x")));
  EXPECT_THAT(first.changed, IsEmpty());
  EXPECT_EQ(run.starts[1].step, 500);
  EXPECT_THAT(run.starts[1].changed,
              ElementsAre(ChangedFact{"lr", "1", "2"}, ChangedFact{"new", "", "y"},
                          ChangedFact{"gone", "x", ""}));
}

TEST(RunFile, IsBegunAnewIfItIsDamaged) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "run.json";
  for (const char* text : {"", "{", "[]", "{\"format\": 1}", "{\"format\": 2}",
                           "{\"format\":1,\"defaults\":{},\"facts\":{\"a\":1},\"starts\":[]}",
                           "{\"format\":1,\"defaults\":{},\"facts\":{},\"starts\":[{}]}"}) {
    write_file(file, text);
    EXPECT_THAT(refusal([&] { read_run_file(file); }), HasSubstr("run.json' is ")) << text;
    EXPECT_THAT(add_start(file, start_with(1, 0), true, {}, {}), HasSubstr("run.json' is "))
        << text;
    EXPECT_EQ(read_run_file(file).starts.size(), 1U) << text;
  }
}

TEST(RunFile, RefusesNumbersThatNoRunHas) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "run.json";
  const auto refusal_of = [&](const std::string& step, const std::string& workers,
                              const std::string& phases) {
    write_file(file, R"({"format":1,"defaults":{},"facts":{},"starts":[{"time":"t","program":"p",)"
                     R"("lines":[],"changed":[],"step":)" +
                         step + ",\"workers\":" + workers + ",\"phases\":" + phases + "}]}");
    return refusal([&] { read_run_file(file); });
  };
  EXPECT_EQ(refusal_of("0", "2", "[[[0, 1]]]"), "accepted");
  EXPECT_THAT(refusal_of("-1", "2", "[]"), HasSubstr("out of range"));
  EXPECT_THAT(refusal_of("1e300", "2", "[]"), HasSubstr("out of range"));
  EXPECT_THAT(refusal_of("18446744073709551615", "2", "[]"), HasSubstr("out of range"));
  for (const char* workers : {"0", "-1", "4294967298", "1e10", "2.5"})
    EXPECT_THAT(refusal_of("0", workers, "[]"), HasSubstr("out of range")) << workers;
  for (const char* phases : {"[[[2]]]", "[[[-1]]]", "[[[4294967296]]]", "[[0.5]]"})
    EXPECT_THAT(refusal_of("0", "2", phases), HasSubstr("out of range")) << phases;
}

TEST(RunFile, BeginsAnewWithARunThatDoesNotGoOn) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "run.json";
  add_start(file, start_with(3, 0), false, {{"lr", "1"}}, {});
  add_start(file, start_with(2, 0), false, {{"lr", "2"}}, {});
  const RunFile run = read_run_file(file);
  ASSERT_EQ(run.starts.size(), 1U);
  EXPECT_EQ(run.starts[0].workers, 2);
  EXPECT_THAT(run.starts[0].changed, IsEmpty());
}

TEST(RunFile, KeepsTheLastStarts) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "run.json";
  std::string starts;
  for (std::size_t step = 0; step < kMostStarts; ++step) {
    starts += (step > 0 ? "," : "") +
              std::string(R"({"time":"t","program":"p","workers":1,"lines":[],"phases":[],)") +
              R"("changed":[],"step":)" + std::to_string(step) + "}";
  }
  write_file(file, R"({"format":1,"defaults":{},"facts":{},"starts":[)" + starts + "]}");
  add_start(file, start_with(3, 5000), true, {}, {});
  const RunFile run = read_run_file(file);
  ASSERT_EQ(run.starts.size(), kMostStarts);
  EXPECT_EQ(run.starts.front().step, 1);
  EXPECT_EQ(run.starts.back().step, 5000);
}

}  // namespace
}  // namespace decent
