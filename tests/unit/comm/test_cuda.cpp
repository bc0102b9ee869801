// The library for GPUs from a program with LibTorch; what needs no GPU. Each test in a process of
// its own: the library stays loaded, and LibTorch asks once whether it has a CUDA half.

#include "decent/comm/cuda.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "../support/child_process.h"
#include "../support/idle_communicator.h"
#include "../support/workers.h"
#include "decent/comm/c10d_variables.h"
#include "decent/comm/device_choice.h"
#include "decent/comm/world.h"
#include "decent/core/cuda_library.h"
#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::in_child;
using ::testing::StartsWith;

bool has_gpu() {
  return in_child([] { return std::to_string(find_cuda_devices().count); }) != "0";
}

TEST(FindCudaDevices, CountsThemOrSaysWhyThereIsNone) {
  const std::string found = in_child([] {
    const CudaDevices devices = find_cuda_devices();
    return devices.count > 0 ? std::string("some") : devices.problem;
  });
  EXPECT_THAT(found,
              ::testing::AnyOf("some", HasSubstr("driver"), HasSubstr("CUDA_VISIBLE_DEVICES"),
                               HasSubstr("built without CUDA")));
}

// What c10d reads when it makes the first group.
std::string c10d_settings() {
  std::string text;
  for (const char* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_RETHROW_CUDA_ERRORS",
                           "TORCH_NCCL_ENABLE_MONITORING", "TORCH_NCCL_DUMP_ON_TIMEOUT",
                           "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "TORCH_FR_BUFFER_SIZE"}) {
    const char* value = std::getenv(name);
    text += std::string(value == nullptr ? "-" : value) + " ";
  }
  return text;
}

TEST(SilenceC10dWarnings, LeavesErrorsToThisLibrary) {
  EXPECT_EQ(in_child([] {
              ::unsetenv("TORCH_FR_BUFFER_SIZE");  // which tests have set
              silence_c10d_warnings();
              return c10d_settings();
            }),
            "0 0 0 0 0 0 ");
  EXPECT_EQ(in_child([] {
              ::setenv("TORCH_NCCL_RETHROW_CUDA_ERRORS", "1", 1);
              silence_c10d_warnings();
              return c10d_settings();
            }),
            "0 1 0 0 0 0 ");
}

#if DECENT_BUILT_WITH_CUDA

// Other threads may read the environment by then.
TEST(ConnectNccl, LeavesTheEnvironmentAsItIs) {
  EXPECT_EQ(in_child([] {
              const auto store = c10::make_intrusive<c10d::HashStore>();
              const std::string before = c10d_settings();
              connect_nccl(*store, make_single_worker());
              return c10d_settings() == before ? std::string("as before") : c10d_settings();
            }),
            "as before");
}

// Loaded in time, LibTorch has a CUDA half, with or without a GPU.
TEST(CudaLibrary, IsKnownToLibTorchWhenLoadedFirst) {
  EXPECT_EQ(in_child([]() -> std::string {
              cuda_symbol("decent_cuda_build_id");
              const bool gpu = at::globalContext().hasCUDA();
              return at::detail::getCUDAHooks().hasCUDART() ? (gpu ? "GPU" : "no GPU") : "too late";
            }),
            has_gpu() ? "GPU" : "no GPU");
}

TEST(CudaLibrary, ComesTooLateAfterTheFirstQuestion) {
  EXPECT_EQ(in_child([]() -> std::string {
              at::globalContext().hasCUDA();
              cuda_symbol("decent_cuda_build_id");
              return at::detail::getCUDAHooks().hasCUDART() ? "in time" : "too late";
            }),
            "too late");
}

// What a program does before it chooses a device leaves the question open.
TEST(CudaLibrary, IsInTimeAfterMeeting) {
  EXPECT_EQ(in_child([]() -> std::string {
              silence_c10d_warnings();
              World world(Launch{}, {});
              cuda_symbol("decent_cuda_build_id");
              return at::detail::getCUDAHooks().hasCUDART() ? "in time" : "too late";
            }),
            "in time");
}

// Errors thrown in the library are the program's.
TEST(CudaLibrary, ThrowsWhatTheProgramCatches) {
  EXPECT_EQ(in_child([]() -> std::string {
              try {
                use_cuda_device(99);
              } catch (const UserError& error) {
                return std::string("caught: ") + error.what();
              }
              return "nothing";
            }).substr(0, 28),
            "caught: there is no GPU 99: ");
  EXPECT_THAT(in_child([]() -> std::string {
                try {
                  cuda_device_name(-1);
                } catch (const Error& error) {
                  return error.what();
                }
                return "nothing";
              }),
              StartsWith("there is no GPU -1: this process may use "));
}

// What CUDA says, and not that a peer was lost.
TEST(ConnectNccl, NeedsAGpu) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(in_child([]() -> std::string {
                const auto store = c10::make_intrusive<c10d::HashStore>();
                try {
                  connect_nccl(*store, std::make_shared<testing::IdleCommunicator>());
                } catch (const c10::Error& error) {
                  return error.what();
                }
                return "nothing";
              }),
              StartsWith("CUDA error: "));
}

#endif

TEST(ChooseDevice, TakesWhatThisMachineHas) {
  const std::string chosen = in_child([] {
    const DeviceChoice choice =
        choose_device(DeviceRequest::automatic, BackendRequest::automatic, Launch{});
    return std::string(choice.device.is_cuda() ? "cuda" : "cpu");
  });
  EXPECT_EQ(chosen, has_gpu() ? "cuda" : "cpu");
}

TEST(ChooseDevice, NamesWhatHidesAllGpus) {
  EXPECT_THAT(in_child([]() -> std::string {
                ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
                choose_device(DeviceRequest::cuda, BackendRequest::automatic, Launch{});
                return "a GPU";
              }),
              ::testing::AllOf(StartsWith("error: device cuda needs a GPU: "),
                               ::testing::AnyOf(HasSubstr("CUDA_VISIBLE_DEVICES is ''"),
                                                HasSubstr("no NVIDIA driver"))));
}

}  // namespace
}  // namespace decent
