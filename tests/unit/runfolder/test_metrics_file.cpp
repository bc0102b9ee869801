#include "decent/runfolder/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

template <typename Write>
std::string written(const Write& write) {
  const testing::TemporaryFolder folder;
  {
    MetricsFile file(folder / "metrics.jsonl");
    write(file);
  }
  return read_text(folder / "metrics.jsonl");
}

const TrainMetrics kTrain = {.step = 10,
                             .epoch = 0.75,
                             .loss = 2.5,
                             .loss_mean = 2.25,
                             .lr = 0.001,
                             .samples_per_s = 1000,
                             .step_ms = 12.5,
                             .comm_wait_ms = 0.25,
                             .data_wait_ms = 0};
const EvalMetrics kEval = {.step = 20,
                           .epoch = 1.5,
                           .loss = 0.5,
                           .scores = {{"accuracy", 0.875}},
                           .samples = 360,
                           .consensus_distance = 0.0625};

// Names and order as users were told.
TEST(MetricsFile, WritesTheLinesOfTheContract) {
  EXPECT_EQ(written([](MetricsFile& f) { f.write(kTrain); }),
            R"({"kind":"train","step":10,"epoch":0.75,"loss":2.5,"loss_mean":2.25,"lr":0.001,)"
            R"("samples_per_s":1000.0,"step_ms":12.5,"comm_wait_ms":0.25,"data_wait_ms":0.0})"
            "\n");
  EXPECT_EQ(written([](MetricsFile& f) { f.write(kEval); }),
            R"({"kind":"eval","step":20,"epoch":1.5,"model":"average","loss":0.5,"accuracy":0.875,)"
            R"("samples":360,"consensus_distance":0.0625})"
            "\n");
  EXPECT_EQ(written([](MetricsFile& f) {
              f.write(EndMetrics{.status = "completed", .step = 30, .wall_s = 1.5});
            }),
            R"({"kind":"end","status":"completed","step":30,"wall_s":1.5})"
            "\n");
}

TEST(MetricsFile, WritesWhoGoesOnAfterALoss) {
  const auto line = [](const ResumeMetrics& metrics) {
    return written([&](MetricsFile& f) { f.write(metrics); });
  };
  EXPECT_EQ(line({.step = 40, .workers = 3, .before = 4, .lost = {2}, .pause_s = 3.5}),
            R"({"kind":"resume","step":40,"workers":3,"before":4,"lost":[2],"pause_s":3.5})"
            "\n");
  EXPECT_EQ(line({.step = 40, .workers = 8, .before = 4}),
            R"({"kind":"resume","step":40,"workers":8,"before":4,"lost":[]})"
            "\n");
}

TEST(MetricsFile, WritesWhatOnlySomeRunsHaveAtTheEnd) {
  TrainMetrics train = kTrain;
  train.grad_norm = 0.5;
  train.loss_scale = 65536;
  train.wrap_share = 0.03125;
  train.gpu_memory_mb = 1536.5;
  EXPECT_THAT(written([&](MetricsFile& f) { f.write(train); }),
              ::testing::EndsWith(R"("data_wait_ms":0.0,"grad_norm":0.5,"loss_scale":65536.0,)"
                                  R"("wrap_share":0.03125,"gpu_memory_mb":1536.5})"
                                  "\n"));
}

TEST(MetricsFile, HasNoAccuracyWhereThereIsNone) {
  EvalMetrics metrics = kEval;
  metrics.scores.clear();
  EXPECT_THAT(written([&](MetricsFile& f) { f.write(metrics); }),
              ::testing::Not(::testing::HasSubstr("accuracy")));
}

TEST(MetricsFile, WritesNullForNonFiniteNumbers) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    TrainMetrics train = kTrain;
    train.loss = value;
    EXPECT_THAT(written([&](MetricsFile& f) { f.write(train); }),
                ::testing::HasSubstr(R"("loss":null,)"));
    EvalMetrics eval = kEval;
    eval.loss = value;
    eval.consensus_distance = value;
    EXPECT_THAT(written([&](MetricsFile& f) { f.write(eval); }),
                ::testing::HasSubstr(R"("consensus_distance":null})"));
  }
}

TEST(MetricsFile, KeepsEveryBitOfANumber) {
  for (const double value :
       {1.0 / 3, 2.2250738585072014e-308, 1.7976931348623157e308, -0.1, std::nextafter(1.0, 2.0)}) {
    TrainMetrics metrics = kTrain;
    metrics.loss = value;
    const std::string line = written([&](MetricsFile& f) { f.write(metrics); });
    EXPECT_EQ(nlohmann::json::parse(line)["loss"].get<double>(), value);
  }
}

TEST(MetricsFile, AppendsLineByLineForOthersToRead) {
  const testing::TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  write_file(path, "{\"kind\":\"old\"}\n");
  MetricsFile file(path);
  file.write(kTrain);
  file.write(kEval);
  const std::string text = read_text(path);  // while it is open
  EXPECT_EQ(text.find("{\"kind\":\"old\"}\n{\"kind\":\"train\""), 0U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(MetricsFile, FailsWithWriteError) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(MetricsFile(folder / "missing/metrics.jsonl"), WriteError);
  MetricsFile full("/dev/full");
  try {
    full.write(EndMetrics{.status = "completed", .step = 1, .wall_s = 1});
    ADD_FAILURE() << "no error";
  } catch (const WriteError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'/dev/full': No space left"));
  }
}

// ---- resuming ----------------------------------------------------------------------------------

constexpr const char* kLines =
    R"({"kind":"train","step":10,"loss":1.0}
{"kind":"eval","step":10,"loss":2.0}
{"kind":"end","status":"stopped","step":10,"wall_s":1.0}
{"kind":"train","step":11,"loss":3.0}
{"kind":"end","status":"completed","step":11,"wall_s":1.0}
{"kind":"eval","step":11,"loss":4.0}
)";

TEST(CutMetrics, LeavesWhatWasThereAtThatStep) {
  const testing::TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", kLines);
  cut_metrics(folder / "metrics.jsonl", {.step = 11, .log_every = 1});
  EXPECT_EQ(read_text(folder / "metrics.jsonl"), R"({"kind":"train","step":10,"loss":1.0}
{"kind":"eval","step":10,"loss":2.0}
{"kind":"train","step":11,"loss":3.0}
{"kind":"eval","step":11,"loss":4.0}
)");
  cut_metrics(folder / "metrics.jsonl", {.step = 10, .log_every = 1});
  EXPECT_EQ(read_text(folder / "metrics.jsonl"), R"({"kind":"train","step":10,"loss":1.0}
{"kind":"eval","step":10,"loss":2.0}
)");
  cut_metrics(folder / "metrics.jsonl", {.step = 9, .log_every = 1});
  EXPECT_EQ(read_text(folder / "metrics.jsonl"), "");
}

TEST(CutMetrics, DropsALineThatWasNotWrittenToItsEnd) {
  const testing::TemporaryFolder folder;
  write_file(folder / "metrics.jsonl",
             "{\"kind\":\"train\",\"step\":10}\n{\"kind\":\"train\",\"st");
  cut_metrics(folder / "metrics.jsonl", {.step = 20, .log_every = 1});
  EXPECT_EQ(read_text(folder / "metrics.jsonl"), "{\"kind\":\"train\",\"step\":10}\n");
}

TEST(CutMetrics, NeedsNoFile) {
  const testing::TemporaryFolder folder;
  cut_metrics(folder / "metrics.jsonl", {.step = 20, .log_every = 1});
  EXPECT_FALSE(std::filesystem::exists(folder / "metrics.jsonl"));
}

TEST(TrainLosses, AreThoseOfTrainLinesInTheirOrder) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  EXPECT_TRUE(train_losses_in(file).empty());
  write_file(file, kLines);
  EXPECT_EQ(train_losses_in(file), (std::vector<double>{1.0, 3.0}));
  write_file(file, "{\"kind\":\"train\",\"step\":10,\"loss\":null}\n");
  ASSERT_EQ(train_losses_in(file).size(), 1U);
  EXPECT_TRUE(std::isnan(train_losses_in(file).front()));
}

// Of a run that is to go on: its next lines are those of a run that never ended there.
TEST(CutMetrics, DropsTheLastLineOfARunThatEndedBetweenTwo) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  const std::string first = "{\"kind\":\"train\",\"step\":10,\"loss\":1.0}\n";
  const std::string last = "{\"kind\":\"train\",\"step\":13,\"loss\":1.0}\n";
  const std::string evaluation = "{\"kind\":\"eval\",\"step\":13,\"loss\":1.0}\n";
  const std::string end = "{\"kind\":\"end\",\"status\":\"completed\",\"step\":13}\n";
  write_file(file, first + last + evaluation + end);
  cut_metrics(file, {.step = 13, .log_every = 10});
  EXPECT_EQ(read_text(file), first + evaluation);
  write_file(file, first + last + evaluation);  // stopped before its end
  cut_metrics(file, {.step = 13, .log_every = 10});
  EXPECT_EQ(read_text(file), first + last + evaluation);
}

// An evaluation that comes again, and what it led to: the last line of a run that it ended.
TEST(CutMetrics, DropsAnEvaluationThatIsPendingAndWhatFollowed) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  const std::string line = "{\"kind\":\"train\",\"step\":3,\"loss\":1.0}\n";
  const std::string evaluation = "{\"kind\":\"eval\",\"step\":3,\"loss\":1.0}\n";
  const std::string earlier = "{\"kind\":\"eval\",\"step\":2,\"loss\":1.0}\n";
  const std::string added = "{\"kind\":\"eval\",\"step\":3,\"loss\":1.0,\"source\":\"other\"}\n";
  write_file(file, earlier + evaluation + line + added);
  cut_metrics(file, {.step = 3, .log_every = 10});
  EXPECT_EQ(read_text(file), earlier + evaluation + line + added);
  cut_metrics(file, {.step = 3, .log_every = 10, .evaluation_pending = true});
  EXPECT_EQ(read_text(file), earlier + added);
  write_file(file, line + evaluation.substr(0, 20));  // half written; the line came before
  cut_metrics(file, {.step = 3, .log_every = 3, .evaluation_pending = true});
  EXPECT_EQ(read_text(file), line);
}

// A run resumes anew at that step, perhaps with the workers of old.
TEST(CutMetrics, DropsAResumeOfThatStepAndKeepsThoseBefore) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  const auto resume = [](int step) {
    return "{\"kind\":\"resume\",\"step\":" + std::to_string(step) +
           ",\"workers\":3,\"before\":4,\"lost\":[]}\n";
  };
  const auto line = [](int step) {
    return "{\"kind\":\"train\",\"step\":" + std::to_string(step) + ",\"loss\":1.0}\n";
  };
  const std::string lines = line(10) + resume(10) + line(11) + line(12) + resume(12) + line(13);
  for (const auto& [step, kept] :
       std::vector<std::pair<int, std::string>>{{13, lines},
                                                {12, line(10) + resume(10) + line(11) + line(12)},
                                                {11, line(10) + resume(10) + line(11)},
                                                {10, line(10)}}) {
    write_file(file, lines);
    cut_metrics(file, {.step = step, .log_every = 1});
    EXPECT_EQ(read_text(file), kept) << step;
  }
  write_file(file, lines);
  EXPECT_EQ(train_losses_in(file).size(), 4U);
  EXPECT_EQ(last_step_in(file), 13);
}

// Nothing was trained since.
TEST(Completion, IsNoneOfARunThatWentOnWithOtherWorkers) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  write_file(file, kLines);
  MetricsFile(file).write(ResumeMetrics{.step = 11, .workers = 1, .before = 2});
  EXPECT_FALSE(completion_in(file));
}

TEST(Completion, IsThatOfARunThatCameToItsEnd) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  EXPECT_FALSE(completion_in(file));
  write_file(file, kLines);
  ASSERT_TRUE(completion_in(file));
  EXPECT_EQ(completion_in(file)->step, 11);
  EXPECT_FALSE(completion_in(file)->stopped_early);
  cut_metrics(file, {.step = 11, .log_every = 1});
  EXPECT_FALSE(completion_in(file));
  write_file(file, "{\"kind\":\"end\",\"status\":\"stopped\",\"step\":10,\"wall_s\":1.0}\n");
  EXPECT_FALSE(completion_in(file));
}

TEST(Completion, TellsOfAnEarlyEnd) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  MetricsFile(file).write(
      EndMetrics{.status = "completed", .step = 9, .wall_s = 1, .stopped_early = true});
  EXPECT_EQ(read_text(file),
            "{\"kind\":\"end\",\"status\":\"completed\",\"step\":9,\"wall_s\":1.0,"
            "\"stopped_early\":true}\n");
  ASSERT_TRUE(completion_in(file));
  EXPECT_TRUE(completion_in(file)->stopped_early);
}

}  // namespace
}  // namespace decent
