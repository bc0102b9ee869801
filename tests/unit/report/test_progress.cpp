#include "decent/report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "decent/report/dry_run_text.h"
#include "decent/report/event_file.h"
#include "decent/report/progress_bar.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

RunFacts facts() {
  return {.workers = 4,
          .threads = 2,
          .device = "cpu, exchange by gloo",
          .parallel = "topology ring (2 phases)",
          .model = "m.pt",
          .parameters = 1000,
          .buckets = 3,
          .train_samples = 500,
          .eval_samples = 100,
          .steps = 60,
          .batch_sizes = {32, 32, 32, 32},
          .updates_per_epoch = 3,
          .optimizer = "adamw",
          .lr = {.value = 0.001, .given = 0.001},
          .output = "runs/m"};
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(StartLines, TellThePlan) {
  const auto lines = start_lines(start_texts(facts()));
  EXPECT_THAT(lines, Each(Not(AnyOf(::testing::IsEmpty(), HasSubstr("\n")))));
  EXPECT_THAT(
      text_of(lines),
      AllOf(HasSubstr("workers  4, 2 threads each, topology ring (2 phases)"),
            HasSubstr("device   cpu, exchange by gloo"), HasSubstr("m.pt: 1000 parameters"),
            HasSubstr("3 buckets"), HasSubstr("500 samples to train on"),
            HasSubstr("100 samples to evaluate on"), HasSubstr("60 updates of 4 x 32 samples"),
            HasSubstr("adamw at lr 0.001"), HasSubstr("runs/m")));
}

TEST(StartLines, TellDifferentBatchSizes) {
  RunFacts slow = facts();
  slow.batch_sizes = {32, 8, 32, 1};
  EXPECT_THAT(text_of(start_lines(start_texts(slow))),
              HasSubstr("60 updates of 2 x 32 + 1 x 8 + 1 x 1 samples, 3 an epoch"));
  slow.batch_sizes = {1};
  EXPECT_THAT(text_of(start_lines(start_texts(slow))), HasSubstr("60 updates of 1 x 1 sample, "));
}

TEST(StartLines, TellWhatIsSent) {
  RunFacts slow = facts();
  slow.sent = {.method = "modulo2", .slices = 4, .bytes = 25e6, .link_mbit = 50};
  EXPECT_THAT(text_of(start_lines(start_texts(slow))),
              HasSubstr("exchange modulo2, 4 slices, sent: 23.8 MiB a worker and step, 4 s at 50 "
                        "Mbit/s\n"));
  slow.workers = 1;
  EXPECT_THAT(text_of(start_lines(start_texts(slow))), Not(HasSubstr("exchange modulo2")));
}

TEST(StartLines, TellHowTheLearningRateWasScaled) {
  RunFacts scaled = facts();
  scaled.lr.value = 0.002;
  EXPECT_THAT(text_of(start_lines(start_texts(scaled))),
              HasSubstr("adamw at lr 0.002 (0.001 x sqrt(4) workers)\n"));
}

TEST(StartLines, CountOneAsOne) {
  RunFacts one = facts();
  one.parameters = one.buckets = one.train_samples = one.steps = 1;
  one.eval_samples = 1;
  const std::string text = text_of(start_lines(start_texts(one)));
  EXPECT_THAT(text, AllOf(HasSubstr("1 parameter to"), HasSubstr("1 bucket\n"),
                          HasSubstr("1 sample to train on"), HasSubstr("1 sample to evaluate on"),
                          HasSubstr("1 update of")));
}

TEST(StartLines, SayThatThereIsNothingToEvaluateOn) {
  RunFacts blind = facts();
  blind.eval_samples.reset();
  EXPECT_THAT(text_of(start_lines(start_texts(blind))), HasSubstr("none to evaluate on"));
}

TEST(ProgressLine, TellsWhereTheRunIs) {
  const TrainMetrics metrics = {.step = 50,
                                .epoch = 1.25,
                                .loss = 0.12345,
                                .lr = 0.00025,
                                .samples_per_s = 1234.4,
                                .step_ms = 100,
                                .comm_wait_ms = 0,
                                .data_wait_ms = 0};
  // 950 steps of 0.1 s are left.
  EXPECT_EQ(progress_line(metrics, 1000),
            "step   50/1000  epoch 1.25  loss 0.1235  lr 2.50e-04  1234 samples/s  left 1:35");
  EXPECT_THAT(progress_line(metrics, 50), ::testing::EndsWith("left 0:00"));
  EXPECT_THAT(progress_line(metrics, 50 + 36610), ::testing::EndsWith("left 1:01:01"));
}

TEST(SpeedText, CountsInSamples) {
  EXPECT_EQ(speed_text(1.4), "1 sample/s");
  EXPECT_EQ(speed_text(0.4), "0 samples/s");
  EXPECT_EQ(speed_text(1.5), "2 samples/s");
}

EvalMetrics evaluation() {
  return {.step = 9,
          .epoch = 1,
          .loss = 0.5,
          .scores = {{"accuracy", 0.98765, true}},
          .samples = 355,
          .consensus_distance = 0.01234};
}

TEST(EvaluationLine, TellsScoresAndDistance) {
  EXPECT_THAT(
      evaluation_line(evaluation(), 4),
      AllOf(HasSubstr("step 9"), HasSubstr("average of 4 models"), HasSubstr("accuracy 98.7"),
            HasSubstr("loss 0.5000"), HasSubstr("355 samples"), HasSubstr("distance 0.0123")));
  EXPECT_THAT(evaluation_line(evaluation(), 1),
              AllOf(Not(HasSubstr("average")), Not(HasSubstr("distance"))));
  EvalMetrics regression = evaluation();
  regression.scores.clear();
  EXPECT_THAT(evaluation_line(regression, 2), Not(HasSubstr("accuracy")));
}

TEST(EndLines, NameResultAndFiles) {
  const auto lines = end_lines(
      RunFolder("runs/m"),
      {.workers = 4,
       .wall_s = 12.34,
       .samples = 1234,
       .evaluation = evaluation(),
       .end = {.step = 60,
               .stopped_early = "loss has not got better",
               .files = {{"TorchScript", "runs/m/model.pt"}, {"best", "runs/m/model-best.pt"}}}});
  EXPECT_THAT(lines, Each(Not(::testing::IsEmpty())));
  EXPECT_THAT(text_of(lines),
              AllOf(HasSubstr("60 updates in 12.3 s"), HasSubstr("98.7"),
                    HasSubstr("100 samples/s overall"), HasSubstr("distance 0.0123"),
                    HasSubstr("early: loss has not got better"), HasSubstr("runs/m/model.pt"),
                    HasSubstr("runs/m/model-best.pt"), HasSubstr("runs/m/metrics.jsonl")));
  const std::string single =
      text_of(end_lines(RunFolder("r"), {.workers = 1, .wall_s = 1, .end = {.step = 1}}));
  EXPECT_THAT(single,
              AllOf(HasSubstr("1 update in"), Not(HasSubstr("accuracy")), Not(HasSubstr("early"))));
}

TEST(ProgressBarText, NeverReachesTheEdge) {
  const Progress progress = {.step = 1234,
                             .total_steps = 5000,
                             .epoch = 3.5,
                             .samples_per_s = 12345,
                             .seconds_left = 95,
                             .loss = 0.1234,
                             .accuracy = 0.987};
  for (std::size_t width = 0; width < 200; ++width) {
    EXPECT_LE(progress_bar_text(progress, width).size(), width == 0 ? 0 : width - 1) << width;
  }
  // A quarter of 26 columns.
  EXPECT_EQ(progress_bar_text(progress, 110),
            "[======                    ]  1234/5000  left 1:35  loss 0.1234  "
            "accuracy 98.70%  12345 samples/s  epoch 3.50");
  EXPECT_EQ(progress_bar_text(progress, 24), "1234/5000  left 1:35");
  EXPECT_EQ(progress_bar_text(progress, 12), "1234/5000");
  Progress done = progress;
  done.step = 5000;
  EXPECT_THAT(progress_bar_text(done, 60), HasSubstr("=]  5000/5000"));
}

// Whichever sign a NaN has: x86 gives inf - inf a negative one.
TEST(WhatIsShown, HasNoSignBeforeNan) {
  for (const double nan : {std::copysign(std::nan(""), 1.0), std::copysign(std::nan(""), -1.0)}) {
    EvalMetrics lost = evaluation();
    lost.loss = lost.consensus_distance = nan;
    lost.scores = {{"accuracy", nan, true}, {"mse", nan}};
    const TrainMetrics train = {.step = 1, .epoch = 1, .loss = nan};
    const std::string text = text_of(
        {progress_line(train, 2), evaluation_line(lost, 2),
         text_of(end_lines(RunFolder("r"),
                           {.workers = 2, .train = train, .evaluation = lost, .end = {.step = 1}})),
         progress_bar_text({.step = 1, .total_steps = 2, .loss = nan, .accuracy = nan}, 150)});
    EXPECT_THAT(text, AllOf(HasSubstr("loss nan"), HasSubstr("accuracy nan%"), HasSubstr("mse nan"),
                            HasSubstr("distance nan"), Not(HasSubstr("-nan"))));
  }
}

TEST(DryRunText, Bytes) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(3.5 * 1024 * 1024), "3.5 MiB");
}

TEST(DryRunText, Phases) {
  EXPECT_EQ(phase_text({{{0, 1}, 0.5}, {{2}, 1}}, 80), "{0 1} {2}");
  EXPECT_EQ(phase_text({{{0, 1}, 0.5}, {{2, 3}, 0.5}, {{4, 5}, 0.5}}, 8), "{0 1} {2 .. (3 edges)");
}

// RFC 3720, appendix B.4.
TEST(Crc32c, OfTheRfc) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
}

TEST(LrText, TellsHowItWasScaled) {
  EXPECT_EQ(lr_text({.value = 0.002, .given = 0.001}, 4), "0.002 (0.001 x sqrt(4) workers)");
  EXPECT_EQ(lr_text({.value = 0.001, .given = 0.001}, 4), "0.001");
}

}  // namespace
}  // namespace decent
