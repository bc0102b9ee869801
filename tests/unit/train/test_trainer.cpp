// The training loop, with workers that are threads.

#include "decent/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../support/digits.h"
#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/core/file.h"
#include "decent/model/model.h"
#include "decent/resume/run_output.h"

namespace decent {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kWorkers = 2;

// What one of the workers is and has while it trains.
struct Worker {
  const Team& team;
  std::unique_ptr<Trainer>& trainer;
};

class TrainerTest : public ::testing::Test {
 protected:
  Recipe recipe() const {
    Recipe recipe = testing::digits_recipe("digits_mlp.pt");
    recipe.output = place_.path() / "run";
    recipe.data.eval->limit = 64;
    recipe.train.epochs = std::nullopt;
    recipe.train.steps = 6;
    recipe.eval.every_epochs = std::nullopt;
    recipe.checkpoint.every_epochs = std::nullopt;
    recipe.log.every_steps = 1;
    recipe.log.progress = ProgressStyle::off;
    recipe.log.tensorboard = false;
    return recipe;
  }
  RunFolder folder() const { return RunFolder(place_.path() / "run"); }

  std::vector<nlohmann::json> lines(const std::string& kind) const {
    std::vector<nlohmann::json> found;
    std::istringstream text(read_text(folder().metrics()));
    for (std::string line; std::getline(text, line);) {
      nlohmann::json parsed = nlohmann::json::parse(line);
      if (parsed["kind"] == kind) found.push_back(std::move(parsed));
    }
    return found;
  }
  std::vector<double> numbers(const std::string& kind, const std::string& key) const {
    std::vector<double> found;
    for (const nlohmann::json& line : lines(kind)) found.push_back(line.at(key).get<double>());
    return found;
  }

 private:
  testing::TemporaryFolder place_;
};

// Every worker makes its trainer and does `work` with it.
void run_trainers(const Recipe& recipe, const std::function<void(const Worker&)>& work) {
  testing::run_worlds(kWorkers, [&](World& world) {
    use_plain_executor();
    Run run = prepare_run(recipe, world.launch(), world.member());
    const Team team(world, world.communicator(run.task.device));
    Log log(team.rank(), Verbosity::quiet);
    const RunOutput output =
        open_output({.team = team, .recipe = recipe, .log = log}, nullptr, RunBegins::afresh);
    auto trainer = std::make_unique<Trainer>(
        std::move(run), team, log, SessionOptions{.run_id = "one", .leaders = output.leaders});
    work({team, trainer});
    team.agree("done", [] {});
  });
}

// The weights of each worker.
std::vector<std::vector<at::Tensor>> weights_after(const Recipe& recipe) {
  std::vector<std::vector<at::Tensor>> all(kWorkers);
  run_trainers(recipe, [&](const Worker& worker) {
    EXPECT_EQ(worker.trainer->train(), TrainingEnd::completed);
    auto& own = all[static_cast<std::size_t>(worker.team.rank())];
    for (const auto& [name, tensor] : worker.trainer->run().task.model->parameters())
      own.push_back(tensor.detach().clone());
  });
  return all;
}

void expect_same(const std::vector<at::Tensor>& ones, const std::vector<at::Tensor>& others) {
  ASSERT_EQ(ones.size(), others.size());
  for (std::size_t i = 0; i < ones.size(); ++i) EXPECT_TRUE(ones[i].equal(others[i])) << i;
}

TEST_F(TrainerTest, LeavesEveryWorkerWithTheAverage) {
  const auto weights = weights_after(recipe());
  expect_same(weights[0], weights[1]);
  EXPECT_THAT(numbers("train", "step"), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(TrainerTest, EvaluatesWithoutChangingWhatIsTrained) {
  const auto without = weights_after(recipe());
  std::filesystem::remove_all(folder().path());
  Recipe evaluates = recipe();
  evaluates.eval.every_steps = 2;
  const auto with = weights_after(evaluates);
  expect_same(without[1], with[1]);
  EXPECT_THAT(numbers("eval", "step"), ElementsAre(2, 4, 6));
  EXPECT_THAT(numbers("eval", "samples"), Each(64));
}

TEST_F(TrainerTest, SavesTheReplicasOfAll) {
  Recipe saves = recipe();
  saves.checkpoint.every_steps = 3;
  run_trainers(saves, [](const Worker& worker) {
    worker.trainer->train();
    worker.trainer->finish();
  });
  const CheckpointFolder checkpoints(folder().checkpoints());
  EXPECT_THAT(checkpoints.steps(), ElementsAre(6, 3));
  checkpoints.visit_manifests([](std::int64_t step, const Manifest& manifest) {
    EXPECT_EQ(manifest.step, step);
    EXPECT_EQ(manifest.files.size(), kWorkers);
  });
  EXPECT_TRUE(std::filesystem::exists(folder().model()));
  EXPECT_EQ(lines("end").at(0)["status"], "completed");
}

// One worker is asked, and all do the same steps.
TEST_F(TrainerTest, StopsAfterAStepThatAllAgreeOn) {
  Recipe endless = recipe();
  endless.train.steps = 1'000'000;
  std::vector<std::filesystem::path> saved(kWorkers);
  run_trainers(endless, [&](const Worker& worker) {
    if (worker.team.rank() == 1) worker.team.control().request_stop(SIGTERM);
    EXPECT_EQ(worker.trainer->train(), TrainingEnd::stopped);
    saved[static_cast<std::size_t>(worker.team.rank())] = worker.trainer->save_stopped();
    worker.trainer->note_end("stopped");
  });
  EXPECT_EQ(saved[0], saved[1]);
  EXPECT_TRUE(std::filesystem::exists(saved[0] / "manifest.json"));
  EXPECT_EQ(lines("end").at(0)["status"], "stopped");
}

// Scaled by 2^120 a gradient is more than float16 holds, so that its step is passed over, until
// enough halvings.
TEST_F(TrainerTest, PassesOverStepsWhoseGradientOverflows) {
  Recipe scaled = recipe();
  scaled.amp = {.dtype = AmpDType::fp16, .init_scale = 0x1p120, .backoff_factor = 0x1p-60};
  const auto weights = weights_after(scaled);
  const std::vector<double> scales = numbers("train", "loss_scale");
  ASSERT_EQ(scales.size(), 6U);
  EXPECT_EQ(scales[0], 0x1p120);
  EXPECT_EQ(scales[1], 0x1p60);
  EXPECT_EQ(scales[2], 1);
  for (const at::Tensor& weight : weights[0]) EXPECT_TRUE(weight.isfinite().all().item<bool>());
}

// The rate is so high that the weights overflow in the first update. No worker hangs.
TEST_F(TrainerTest, EndsWhereTheLossIsLost) {
  Recipe diverges = recipe();
  diverges.optimizer.name = "sgd";
  diverges.optimizer.lr = 1e38;
  run_trainers(diverges, [](const Worker& worker) {
    try {
      worker.trainer->train();
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::diverged);
      EXPECT_THAT(error.what(), HasSubstr("diverged"));
      worker.trainer->note_end("failed", error.what());
    }
    (void)worker.trainer.release();  // exchanges may be under way
  });
  EXPECT_EQ(lines("end").at(0)["status"], "failed");
}

}  // namespace
}  // namespace decent
