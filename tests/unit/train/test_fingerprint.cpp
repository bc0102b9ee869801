#include "decent/train/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "decent/config/loader.h"
#include "decent/resume/compatibility.h"
#include "decent/resume/topics.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

const DeviceChoice kGpu{
    .device = c10::Device(c10::kCUDA, 1), .backend = Backend::nccl, .note = "noted"};

// The task of the digits, opened on the CPU.
Task digits_task() {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  if (root == nullptr) throw std::runtime_error("set DECENT_SOURCE_DIR to the repository's root");
  const std::filesystem::path recipe = std::filesystem::path(root) / "configs" / "digits.yaml";
  const std::vector<std::string> overrides = {"model.device=cpu"};
  return open_task(load_recipe(recipe, overrides, recipe_names()), {}, Purpose::training);
}

TEST(Fingerprint, HasTheDeviceThatWasChosen) {
  Task task = digits_task();
  EXPECT_THAT(fingerprint_of(task, {}), Contains(Pair("the device", "cpu")));
  EXPECT_THAT(fingerprint_of(task, {}), Contains(Pair("the exchange", "gloo")));
  const Facts cpu = fingerprint_of(task, {});

  // Another wish that comes to the same is none.
  task.recipe.model.device = DeviceName::automatic;
  task.recipe.parallel.backend = BackendName::gloo;
  EXPECT_EQ(difference_text({cpu, fingerprint_of(task, {})}), "");

  task.device = kGpu;
  EXPECT_THAT(difference_text({cpu, cpu, fingerprint_of(task, {})}),
              AllOf(StartsWith("rank 2 "), HasSubstr("the device is cuda, on rank 0 cpu"),
                    HasSubstr("the exchange is nccl, on rank 0 gloo")));
  task.device.device = c10::Device(c10::kCUDA, 0);  // of another worker
  const Facts first = fingerprint_of(task, {});
  task.device.device = c10::Device(c10::kCUDA, 1);
  EXPECT_EQ(difference_text({first, fingerprint_of(task, {})}), "");
}

TEST(Facts, SayWhoIsOnWhichMachineWhereThatMatters) {
  decent::Run run{.task = digits_task(), .plan = {}, .trial = {}};
  run.plan.machines = {0, 0, 2};
  EXPECT_EQ(value_of(facts_of(run), kPlacementTopic), "");
  run.task.recipe.parallel.comm_dtype_within = "bf16";
  EXPECT_EQ(value_of(facts_of(run), kPlacementTopic), "0 0 2");
  run.task.recipe.parallel.method = "none";
  EXPECT_EQ(value_of(facts_of(run), kPlacementTopic), "");
}

TEST(Facts, SayWhoseBatchesAreHowLargeWhereTheyMayDiffer) {
  decent::Run run{.task = digits_task(), .plan = {}, .trial = {}};
  const auto plan = [&run] {
    run.plan = make_plan(run.task, {.workers = everyone(3), .rank = 1, .local_size = 3});
    return value_of(facts_of(run), kBatchSizesTopic);
  };
  EXPECT_EQ(plan(), "");
  run.task.recipe.data.batch_size = {.usual = 8, .hosts = {}, .ranks = {{"1", 2}}};
  EXPECT_EQ(plan(), "8 2 8");
}

TEST(Resume, TellsOfAnotherDevice) {
  Task task = digits_task();
  Manifest manifest;
  manifest.world_size = 1;
  manifest.facts = facts_of(task, {});
  task.device = kGpu;
  task.recipe.model.device = DeviceName::cuda;
  task.recipe.parallel.backend = BackendName::nccl;
  const ResumingRun now{.facts = facts_of(task, {}), .names = recipe_names()};
  EXPECT_THAT(
      check_can_resume(manifest, now),
      ::testing::ElementsAre("the device was cpu, is cuda", "the exchange was gloo, is nccl"));
}

}  // namespace
}  // namespace decent
