#include "decent/task/device.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "decent/core/error.h"
#include "decent/data/device_batch.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const DeviceChoice kGpu{
    .device = c10::Device(c10::kCUDA, 1), .backend = Backend::nccl, .note = "noted"};

Recipe recipe_with(DeviceName device, BackendName backend) {
  Recipe recipe;
  recipe.model.device = device;
  recipe.parallel.backend = backend;
  return recipe;
}

std::string refusal(const Recipe& recipe) {
  try {
    device_for(recipe, {}, Purpose::training,
               [](DeviceRequest, BackendRequest, const Launch&) -> DeviceChoice {
                 throw UserError("no GPU");
               });
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DeviceFor, AsksForWhatTheRecipeSays) {
  Launch launch;
  launch.local_rank = 1;
  std::vector<std::pair<DeviceRequest, BackendRequest>> requests;
  const DeviceChooser choose = [&](DeviceRequest device, BackendRequest backend,
                                   const Launch& where) {
    EXPECT_EQ(where.local_rank, launch.local_rank);
    requests.emplace_back(device, backend);
    return kGpu;
  };
  for (const Purpose purpose : {Purpose::training, Purpose::evaluation}) {
    const DeviceChoice choice =
        device_for(recipe_with(DeviceName::cuda, BackendName::automatic), launch, purpose, choose);
    EXPECT_EQ(choice.device, kGpu.device);
    EXPECT_EQ(choice.backend, Backend::nccl);
    EXPECT_EQ(choice.note, "noted");
  }
  device_for(recipe_with(DeviceName::cpu, BackendName::gloo), launch, Purpose::training, choose);
  device_for(recipe_with(DeviceName::automatic, BackendName::nccl), launch, Purpose::training,
             choose);
  using D = DeviceRequest;
  using B = BackendRequest;
  EXPECT_EQ(requests, (std::vector<std::pair<D, B>>{{D::cuda, B::automatic},
                                                    {D::cuda, B::automatic},
                                                    {D::cpu, B::gloo},
                                                    {D::automatic, B::nccl}}));
}

TEST(DeviceFor, NeedsNoGpuToExport) {
  const DeviceChoice choice =
      device_for(recipe_with(DeviceName::cuda, BackendName::nccl), {}, Purpose::model,
                 [](DeviceRequest, BackendRequest, const Launch&) -> DeviceChoice {
                   throw UserError("no GPU");
                 });
  EXPECT_TRUE(choice.device.is_cpu());
}

TEST(DeviceFor, NamesTheKeysThatCannotBeMet) {
  EXPECT_EQ(refusal(recipe_with(DeviceName::cuda, BackendName::automatic)),
            "model.device: cuda: no GPU");
  EXPECT_EQ(refusal(recipe_with(DeviceName::automatic, BackendName::nccl)),
            "parallel.backend: nccl: no GPU");
  EXPECT_EQ(refusal(recipe_with(DeviceName::cpu, BackendName::nccl)),
            "model.device: cpu, parallel.backend: nccl: no GPU");
  EXPECT_EQ(refusal(recipe_with(DeviceName::cuda, BackendName::gloo)),
            "model.device: cuda: no GPU");
}

TEST(DeviceText, TellsTheExchangeWhereThereIsOne) {
  EXPECT_EQ(device_text({}, 1), "cpu");
  EXPECT_EQ(device_text({}, 2), "cpu, exchange by gloo");
  EXPECT_EQ(device_text({.sharing = Sharing::all}, 2), "cpu, exchange by shared memory");
  EXPECT_EQ(device_text({.sharing = Sharing::within_machines}, 3),
            "cpu, exchange by shared memory and gloo");
  EXPECT_EQ(device_text({.sharing = Sharing::all}, 1), "cpu");
}

TEST(DeviceBatch, LeavesABatchOnTheCpuWhereItIs) {
  const Batch batch{.fields = {at::ones({2, 3}), at::ones({2}, at::kLong)}};
  const DeviceBatch held(batch, at::kCPU);
  const Batch& moved = held.there();
  ASSERT_EQ(moved.fields.size(), 2U);
  EXPECT_TRUE(moved.fields[0].is_same(batch.fields[0]));
  EXPECT_TRUE(moved.fields[1].is_same(batch.fields[1]));
  EXPECT_EQ(host_memory_for(at::kCPU), HostMemory::pageable);
  EXPECT_EQ(host_memory_for(kGpu.device), HostMemory::pinned);
}

TEST(DeviceTrouble, IsWhatIsKnownOfTheGpusError) {
  EXPECT_FALSE(device_trouble(std::runtime_error("anything else\nframe #0")));
  const auto memory =
      device_trouble(std::runtime_error("CUDA out of memory. Tried to allocate 2 GiB.\nframe #0"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->code, ExitCode::user_error);
  EXPECT_THAT(memory->message, AllOf(StartsWith("CUDA out of memory"), HasSubstr("data.batch_size"),
                                     Not(HasSubstr("frame"))));
  const auto fault = device_trouble(
      std::runtime_error("CUDA error: uncorrectable ECC error encountered\nSearch for `cudaError"));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->code, ExitCode::peer_lost);
  EXPECT_THAT(fault->message, AllOf(StartsWith("CUDA error: uncorrectable ECC error encountered\n"),
                                    HasSubstr("dmesg"), Not(HasSubstr("Search"))));
}

}  // namespace
}  // namespace decent
