#include "decent/comm/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "../support/launches.h"
#include "decent/comm/cuda.h"
#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::HasSubstr;

const std::string kNoDriver = "this machine has no NVIDIA driver";
const std::string kOldDriver = "the NVIDIA driver is for CUDA 12.4 at most";

// A machine with so many GPUs, and what was done to it.
struct Imagined {
  CudaDevices gpus;
  bool shared = false;
  bool own_gpus = false;
  bool parts_of_gpus = false;
  int asked = 0;
  std::vector<int> used = {};

  DeviceChoice choose(DeviceRequest device, BackendRequest backend, int worker, int workers) {
    Launch launch = testing::launch_of(worker, workers, /*port=*/1);
    launch.own_gpus = own_gpus;
    launch.parts_of_gpus = parts_of_gpus;
    return choose_device_of({.find_gpus =
                                 [this] {
                                   ++asked;
                                   return gpus;
                                 },
                             .use_gpu = [this](int index) { used.push_back(index); },
                             .gpus_may_be_shared = shared},
                            device, backend, launch);
  }

  std::string refusal(DeviceRequest device, BackendRequest backend, int workers) {
    try {
      choose(device, backend, 0, workers);
    } catch (const UserError& error) {
      EXPECT_TRUE(used.empty());
      return error.what();
    }
    return "";
  }
};

Imagined with_gpus(int count, bool shared = false) {
  return {.gpus = {.count = count}, .shared = shared};
}
Imagined without_driver() { return {.gpus = {.problem = kNoDriver}}; }
Imagined with_old_driver() { return {.gpus = {.problem = kOldDriver, .unexpected = true}}; }

void expect_cpu(const DeviceChoice& choice) {
  EXPECT_TRUE(choice.device.is_cpu());
  EXPECT_EQ(choice.backend, Backend::gloo);
}

void expect_gpu(const DeviceChoice& choice, int index, Backend backend) {
  EXPECT_TRUE(choice.device.is_cuda());
  EXPECT_EQ(choice.device.index(), index);
  EXPECT_EQ(choice.backend, backend);
  EXPECT_EQ(choice.note, "");
}

TEST(ChooseDevice, GivesEveryWorkerItsGpu) {
  for (const DeviceRequest request : {DeviceRequest::automatic, DeviceRequest::cuda}) {
    Imagined machine = with_gpus(4);
    expect_gpu(machine.choose(request, BackendRequest::automatic, 3, 4), 3, Backend::nccl);
    expect_gpu(machine.choose(request, BackendRequest::nccl, 1, 4), 1, Backend::nccl);
    expect_gpu(machine.choose(request, BackendRequest::gloo, 0, 2), 0, Backend::gloo);
    EXPECT_EQ(machine.used, std::vector<int>({3, 1, 0}));
  }
}

TEST(ChooseDevice, LeavesTheGpusAloneForTheCpu) {
  Imagined machine = with_gpus(4);
  expect_cpu(machine.choose(DeviceRequest::cpu, BackendRequest::automatic, 0, 1));
  expect_cpu(machine.choose(DeviceRequest::cpu, BackendRequest::gloo, 0, 1));
  EXPECT_EQ(machine.asked, 0);  // which would load the library
}

TEST(ChooseDevice, TakesTheCpuWhereThereIsNoGpu) {
  Imagined machine = without_driver();
  for (const BackendRequest backend : {BackendRequest::automatic, BackendRequest::gloo}) {
    const DeviceChoice choice = machine.choose(DeviceRequest::automatic, backend, 0, 2);
    expect_cpu(choice);
    EXPECT_EQ(choice.note, "");  // nothing that anybody would wonder at
  }
}

TEST(ChooseDevice, NotesAGpuThatCannotBeUsed) {
  Imagined machine = with_old_driver();
  const auto choice = machine.choose(DeviceRequest::automatic, BackendRequest::automatic, 0, 2);
  expect_cpu(choice);
  EXPECT_EQ(choice.note, "training on the CPU, as no GPU can be used: " + kOldDriver);
}

TEST(ChooseDevice, NotesGpusThatAreTooFew) {
  Imagined machine = with_gpus(2);
  const auto choice = machine.choose(DeviceRequest::automatic, BackendRequest::automatic, 3, 4);
  expect_cpu(choice);
  EXPECT_EQ(choice.note, "training on the CPU, as there are 2 GPUs for 4 workers on this machine");
  EXPECT_TRUE(machine.used.empty());
}

TEST(ChooseDevice, RefusesCudaWithoutAGpu) {
  EXPECT_EQ(without_driver().refusal(DeviceRequest::cuda, BackendRequest::automatic, 1),
            "device cuda needs a GPU: " + kNoDriver +
                ".\nTo train on the CPU choose device cpu (or auto).");
  EXPECT_THAT(with_old_driver().refusal(DeviceRequest::cuda, BackendRequest::gloo, 1),
              HasSubstr(kOldDriver));
}

TEST(ChooseDevice, RefusesNcclWithoutAGpu) {
  EXPECT_EQ(without_driver().refusal(DeviceRequest::automatic, BackendRequest::nccl, 2),
            "backend nccl needs a GPU: " + kNoDriver +
                ".\nTo train on the CPU choose device cpu and backend gloo (or auto).");
  EXPECT_THAT(with_gpus(4).refusal(DeviceRequest::cpu, BackendRequest::nccl, 2),
              HasSubstr("backend nccl carries tensors between GPUs, but the device is cpu"));
}

TEST(ChooseDevice, RefusesTooFewGpusForNccl) {
  for (const auto& [device, backend] :
       {std::pair(DeviceRequest::cuda, BackendRequest::automatic),
        std::pair(DeviceRequest::cuda, BackendRequest::nccl),
        std::pair(DeviceRequest::automatic, BackendRequest::nccl)}) {
    const std::string text = with_gpus(1).refusal(device, backend, 4);
    EXPECT_THAT(text, HasSubstr("there is 1 GPU for 4 workers on this machine"));
    EXPECT_THAT(text, HasSubstr("backend gloo"));
    EXPECT_THAT(text, HasSubstr("NCCL_HOSTID"));
  }
}

TEST(ChooseDevice, SharesGpusByGloo) {
  Imagined machine = with_gpus(2);
  for (int worker = 0; worker < 4; ++worker) {
    expect_gpu(machine.choose(DeviceRequest::cuda, BackendRequest::gloo, worker, 4), worker % 2,
               Backend::gloo);
  }
}

TEST(ChooseDevice, TakesTheFirstOfGpusThatNobodyElseSees) {
  Imagined machine = with_gpus(1);
  machine.own_gpus = true;
  for (const DeviceRequest request : {DeviceRequest::automatic, DeviceRequest::cuda}) {
    const auto choice = machine.choose(request, BackendRequest::automatic, 3, 4);
    expect_gpu(choice, 0, Backend::nccl);
    EXPECT_TRUE(choice.by_network);
  }
  const auto by_nccl = machine.choose(DeviceRequest::cuda, BackendRequest::nccl, 1, 4);
  expect_gpu(by_nccl, 0, Backend::nccl);
  EXPECT_FALSE(by_nccl.by_network);  // it was asked for
  machine.gpus = {.problem = kNoDriver};
  expect_cpu(machine.choose(DeviceRequest::automatic, BackendRequest::automatic, 1, 4));
}

TEST(ChooseDevice, TakesGlooBetweenPartsOfGpus) {
  Imagined machine = with_gpus(1);
  machine.own_gpus = machine.parts_of_gpus = true;
  for (const DeviceRequest request : {DeviceRequest::automatic, DeviceRequest::cuda}) {
    expect_gpu(machine.choose(request, BackendRequest::automatic, 1, 2), 0, Backend::gloo);
    expect_gpu(machine.choose(request, BackendRequest::gloo, 1, 2), 0, Backend::gloo);
  }
  machine.shared = true;
  expect_gpu(machine.choose(DeviceRequest::cuda, BackendRequest::automatic, 1, 2), 0,
             Backend::nccl);
  expect_gpu(machine.choose(DeviceRequest::cuda, BackendRequest::nccl, 1, 2), 0, Backend::nccl);
  // Workers with whole GPUs choose what the others do.
  machine = with_gpus(4);
  machine.parts_of_gpus = true;
  expect_gpu(machine.choose(DeviceRequest::cuda, BackendRequest::automatic, 1, 2), 1,
             Backend::gloo);
  machine.used.clear();
  const std::string text = machine.refusal(DeviceRequest::cuda, BackendRequest::nccl, 2);
  EXPECT_THAT(text, HasSubstr("parts of one GPU (MIG)"));
  EXPECT_THAT(text, HasSubstr("backend gloo"));
  EXPECT_THAT(text, HasSubstr("NCCL_HOSTID"));
}

// By worker: own GPUs or not, and a mark where some workers' are parts of one GPU.
std::string compared(const std::vector<std::vector<GpuId>>& seen) {
  std::string text;
  for (int rank = 0; rank < static_cast<int>(seen.size()); ++rank) {
    Launch launch = testing::launch_of(rank, static_cast<int>(seen.size()), /*port=*/1);
    launch.own_gpus = launch.parts_of_gpus = true;  // which it is to say, whatever was there
    compare_gpus(seen, launch);
    text += launch.own_gpus ? "own" : "-";
    text += launch.parts_of_gpus ? "* " : " ";
  }
  return text;
}

TEST(CompareGpus, FindsWhoSeesGpusThatNobodyElseSees) {
  const GpuId a = {"a", "x 1"};
  const GpuId b = {"b", "x 2"};
  const GpuId elsewhere = {"c", "y 1"};
  EXPECT_EQ(compared({{a}, {b}, {elsewhere}}), "own own own ");
  EXPECT_EQ(compared({{a, b}, {elsewhere}}), "own own ");
  EXPECT_EQ(compared({{a, b}, {a, b}, {elsewhere}}), "- - own ");
  EXPECT_EQ(compared({{a, b}, {b}}), "- - ");
  EXPECT_EQ(compared({{a}, {}}), "own - ");
  EXPECT_EQ(compared({{}, {}}), "- - ");
}

TEST(CompareGpus, FindsPartsOfOneGpu) {
  const GpuId first = {"a", "x 1"};
  const GpuId second = {"b", "x 1"};
  const GpuId whole = {"c", "x 2"};
  EXPECT_EQ(compared({{first}, {second}}), "own* own* ");
  EXPECT_EQ(compared({{first}, {whole}, {second}}), "own* own* own* ");
  EXPECT_EQ(compared({{first}, {whole}}), "own own ");
  // Of one worker they are no matter of NCCL's.
  EXPECT_EQ(compared({{first, second}, {whole}}), "own own ");
}

TEST(ChooseDevice, SharesGpusByNcclWhereItMay) {
  Imagined machine = with_gpus(2, /*shared=*/true);
  expect_gpu(machine.choose(DeviceRequest::cuda, BackendRequest::automatic, 3, 4), 1,
             Backend::nccl);
  expect_gpu(machine.choose(DeviceRequest::automatic, BackendRequest::nccl, 2, 4), 0,
             Backend::nccl);
  // Nobody asked for it.
  expect_cpu(machine.choose(DeviceRequest::automatic, BackendRequest::automatic, 2, 4));
}

// On the CPU, unless gloo is asked for.
TEST(Choice, AllowsSharedMemory) {
  Imagined machine = with_gpus(1);
  for (const auto device : {DeviceRequest::cpu, DeviceRequest::automatic}) {
    EXPECT_TRUE(machine.choose(device, BackendRequest::automatic, 0, 2).may_share_memory);
    EXPECT_FALSE(machine.choose(device, BackendRequest::gloo, 0, 2).may_share_memory);
  }
  EXPECT_FALSE(machine.choose(DeviceRequest::cuda, BackendRequest::gloo, 0, 2).may_share_memory);
}

TEST(CarrierName, SaysWhoSharesMemory) {
  EXPECT_EQ(carrier_name({}), "gloo");
  EXPECT_EQ(carrier_name({.backend = Backend::nccl}), "nccl");
  EXPECT_EQ(carrier_name({.sharing = Sharing::within_machines}), "shared memory and gloo");
  EXPECT_EQ(carrier_name({.sharing = Sharing::all}), "shared memory");
}

TEST(BackendName, IsThatOfTheRecipe) {
  EXPECT_EQ(backend_name(Backend::gloo), "gloo");
  EXPECT_EQ(backend_name(Backend::nccl), "nccl");
}

}  // namespace
}  // namespace decent
