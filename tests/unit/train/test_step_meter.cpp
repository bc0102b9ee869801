#include "decent/train/step_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "../support/workers.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StepMeter, AveragesLossAndNormOverWorkers) {
  testing::run_workers(2, [](const std::shared_ptr<Communicator>& world) {
    std::vector<TrainMetrics> lines;
    StepMeter meter(world, [&](const TrainMetrics& line) { lines.push_back(line); });
    meter.add_step(0, 0.5);
    const double own = world->rank() == 0 ? 1 : 3;
    meter.begin_line({.step = 1, .loss = own, .grad_norm = 10 * own, .update_samples = 64});
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines.at(0).step, 1);
    EXPECT_EQ(lines.at(0).loss, 2);
    EXPECT_EQ(lines.at(0).grad_norm, 20);
    return testing::Nothing{};
  });
}

// The mean over all samples, of which rank 0 has 6 and rank 1 has 2. All numbers are exact.
TEST(StepMeter, WeighsLosses) {
  testing::run_workers(2, [](const std::shared_ptr<Communicator>& world) {
    std::vector<TrainMetrics> lines;
    StepMeter meter(world, [&](const TrainMetrics& line) { lines.push_back(line); });
    const bool is_first = world->rank() == 0;
    meter.add_step(is_first ? 2 : 4, 0.5);
    meter.add_step(is_first ? 1 : 3, 0.5);
    meter.begin_line({.step = 2,
                      .loss = is_first ? 1.0 : 3.0,
                      .weight = is_first ? 1.5 : 0.5,
                      .grad_norm = is_first ? 1.0 : 3.0});
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines.at(0).loss, (6 * 1 + 2 * 3) / 8.0);
    EXPECT_EQ(lines.at(0).loss_mean, (6 * 1.5 + 2 * 3.5) / 8);
    EXPECT_EQ(lines.at(0).grad_norm, 2);
    return testing::Nothing{};
  });
}

// Of three workers one has none, as a worker that was alone in the phase of the step.
TEST(StepMeter, AveragesWrapSharesOverTheWorkersThatHaveOne) {
  testing::run_workers(3, [](const std::shared_ptr<Communicator>& world) {
    std::vector<TrainMetrics> lines;
    StepMeter meter(
        world, [&](const TrainMetrics& line) { lines.push_back(line); }, /*wrap_shares=*/true);
    const std::optional<double> shares[] = {0.25, std::nullopt, 0.75};
    meter.add_step(0, 1);
    meter.begin_line({.step = 1, .loss = 2, .wrap_share = shares[world->rank()]});
    meter.add_step(0, 1);
    meter.begin_line({.step = 2, .loss = 4});
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines.at(0).wrap_share, 0.5);
    EXPECT_EQ(lines.at(0).loss, 2);
    EXPECT_EQ(lines.at(1).wrap_share, std::nullopt);
    EXPECT_EQ(lines.at(1).loss, 4);
    return testing::Nothing{};
  });
}

// What there is not stays so, and a norm may be no number.
TEST(StepMeter, KeepsTheFactsOfAStepForACheckpoint) {
  testing::run_workers(1, [](const std::shared_ptr<Communicator>& world) {
    StepMeter saved(world, [](const TrainMetrics&) {});
    saved.keep({.step = 7, .loss = 0.1, .grad_norm = std::nan(""), .wrap_share = 0.5});
    StepMeter resumed(world, [](const TrainMetrics&) {});
    resumed.last_step().copy_(saved.last_step());
    const StepFacts facts = resumed.kept({.step = 7, .lr = 2, .loss_scale = 4});
    EXPECT_EQ(facts.lr, 2);
    EXPECT_EQ(facts.loss, 0.1);
    EXPECT_TRUE(facts.grad_norm && std::isnan(*facts.grad_norm));
    EXPECT_EQ(facts.loss_scale, std::nullopt);
    EXPECT_EQ(facts.wrap_share, 0.5);
    return testing::Nothing{};
  });
}

// Exact: all times are sums of powers of two.
TEST(StepMeter, GivesMeansOverTheStepsSinceTheLineBefore) {
  testing::run_workers(1, [](const std::shared_ptr<Communicator>& world) {
    std::vector<TrainMetrics> lines;
    StepMeter meter(world, [&](const TrainMetrics& line) { lines.push_back(line); });
    for (const double seconds : {0.25, 0.75}) meter.add_step(0, seconds);
    meter.add_data_wait(0.125);
    meter.begin_line(
        {.step = 2, .update_samples = 64, .comm_wait_s = 0.25, .gpu_memory_mb = 512.5});
    meter.add_step(0, 2);
    meter.begin_line({.step = 3, .update_samples = 64});
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines.at(0).step_ms, 500);
    EXPECT_EQ(lines.at(0).samples_per_s, 128);
    EXPECT_EQ(lines.at(0).data_wait_ms, 62.5);
    EXPECT_EQ(lines.at(0).comm_wait_ms, 125);
    EXPECT_EQ(lines.at(0).gpu_memory_mb, 512.5);
    EXPECT_EQ(lines.at(1).gpu_memory_mb, std::nullopt);
    EXPECT_EQ(lines.at(1).step_ms, 2000);
    EXPECT_EQ(lines.at(1).data_wait_ms, 0);
    EXPECT_FALSE(lines.at(1).grad_norm);
    return testing::Nothing{};
  });
}

// A line between two that come in their turn changes the second of them in nothing.
TEST(StepMeter, AveragesTheLossesSinceTheLineBefore) {
  testing::run_workers(2, [](const std::shared_ptr<Communicator>& world) {
    std::vector<TrainMetrics> lines;
    StepMeter meter(world, [&](const TrainMetrics& line) { lines.push_back(line); });
    const double own = world->rank() == 0 ? 1 : 3;
    meter.add_step(own, 1);
    meter.add_step(4 * own, 1);
    meter.begin_line({.step = 2, .loss = 4 * own});
    meter.add_step(own, 1);
    meter.begin_line({.step = 3, .loss = own, .between = true});
    meter.add_step(2 * own, 1);
    meter.begin_line({.step = 4, .loss = 2 * own});
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines.at(0).loss_mean, 5);
    EXPECT_EQ(lines.at(1).loss_mean, 2);
    EXPECT_EQ(lines.at(2).loss_mean, 3);
    EXPECT_EQ(meter.losses().sum().item<double>(), 0);
    return testing::Nothing{};
  });
}

TEST(StepMeter, ShowsALineOnce) {
  testing::run_workers(1, [](const std::shared_ptr<Communicator>& world) {
    int shown = 0;
    StepMeter meter(world, [&](const TrainMetrics&) { ++shown; });
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(shown, 0);
    meter.add_step(0, 1);
    meter.begin_line({.step = 1});
    meter.finish_line(/*wait=*/true);
    meter.finish_line(/*wait=*/true);
    EXPECT_EQ(shown, 1);
    return testing::Nothing{};
  });
}

TEST(WrapWatch, WarnsOnceOfAShareAboveTheLimit) {
  WrapWatch watch;
  EXPECT_EQ(watch.saw(10, 0), std::nullopt);
  EXPECT_EQ(watch.saw(20, WrapWatch::kMaxShare), std::nullopt);
  EXPECT_EQ(watch.saw(30, std::nan("")), std::nullopt);
  EXPECT_THAT(watch.saw(40, 0.0625).value_or(""),
              AllOf(HasSubstr("step 40"), HasSubstr("6.25%"), HasSubstr("wrap_share"),
                    HasSubstr("parallel.modulo_range"), HasSubstr("modulo4"), HasSubstr("slices"),
                    HasSubstr("optimizer.lr")));
  EXPECT_EQ(watch.saw(50, 0.5), std::nullopt);
}

}  // namespace
}  // namespace decent
