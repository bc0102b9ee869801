#include "decent/core/gpu_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "decent/core/host.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kUser = ExitCode::user_error;    // another start would end in the same way
constexpr auto kRestart = ExitCode::peer_lost;  // it may go well

struct Case {
  const char* text;
  ExitCode code;
  const char* advice;  // a part of it
};

// As CUDA 13.0, NCCL 2.28 and LibTorch 2.11 word them.
const Case kCases[] = {
    {"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB",
     kUser, "data.batch_size"},
    {"Allocation on device 0 would exceed allowed memory. (out of memory)\nGPU 0", kUser,
     "data.batch_size"},
    {"CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'", kUser, "nvidia-smi"},
    {"CUDA error: out of memory", kUser, "ulimit -l"},
    {"CUDA driver error: out of memory", kUser, "nvidia-smi"},
    {"CUDA: sum of squares: out of memory", kUser, "nvidia-smi"},
    {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", kUser,
     "data.batch_size"},
    {"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", kUser,
     "data.batch_size"},
    {"cuDNN error: CUDNN_STATUS_ALLOC_FAILED", kUser, "data.batch_size"},
    {"cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", kUser, "data.batch_size"},
    {"exchange of worker 0 with worker 1 failed: NCCL error in: NCCLUtils.cpp:94, unhandled cuda "
     "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9: Cuda failure 2 'out of "
     "memory'",
     kUser, "data.batch_size"},
    {"NCCL error in: NCCLUtils.cpp:94, invalid usage: Duplicate GPU detected : rank 1 and rank 0 "
     "both on CUDA device 65000",
     kUser, "parallel.backend: gloo"},
    {"CUDA error: device-side assert triggered", kUser, "out of range"},
    {"CUDA: update: device-side assert triggered", kUser, "model.device: cpu"},
    {"CUDA error: no kernel image is available for execution on the device", kUser,
     "compute capability 7.5"},
    {"CUDA error: CUDA-capable device(s) is/are busy or unavailable", kRestart, "nvidia-smi"},
    {"CUDA error: all CUDA-capable devices are busy or unavailable", kRestart, "compute mode"},
    {"CUDA error: uncorrectable ECC error encountered", kRestart, "fault of the GPU"},
    {"CUDA error: uncorrectable NVLink error detected during the execution", kRestart,
     "fault of the GPU"},
    {"CUDA error: GPU has fallen off the bus", kRestart, "fault of the GPU"},
    {"CUDA error: hardware stack error", kRestart, "fault of the GPU"},
    {"CUDA error: an illegal memory access was encountered", kRestart, "CUDA_LAUNCH_BLOCKING"},
    {"CUDA error: an illegal instruction was encountered", kRestart, "CUDA_LAUNCH_BLOCKING"},
    {"CUDA error: misaligned address", kRestart, "CUDA_LAUNCH_BLOCKING"},
    {"CUDA error: unspecified launch failure", kRestart, "CUDA_LAUNCH_BLOCKING"},
    {"NCCL between the GPUs of workers 0,1 failed: CUDA error: unspecified launch failure",
     kRestart, "dmesg"},
};

TEST(GpuErrors, AreKnownByTheirTexts) {
  for (const Case& each : kCases) {
    const auto found = gpu_error_of(each.text);
    ASSERT_TRUE(found) << each.text;
    EXPECT_EQ(found->code, each.code) << each.text;
    EXPECT_THAT(found->advice, AllOf(::testing::StartsWith("\n"), HasSubstr(each.advice)))
        << each.text;
    EXPECT_LE(std::count(found->advice.begin(), found->advice.end(), '\n'), 3) << each.text;
    EXPECT_THAT(found->advice, Not(HasSubstr("HOST"))) << each.text;
  }
}

TEST(GpuErrors, NameTheHostWhereTheGpuIsAtFault) {
  for (const char* text : {"CUDA error: uncorrectable ECC error encountered",
                           "CUDA error: unspecified launch failure"}) {
    EXPECT_THAT(gpu_error_of(text).value().advice,
                AllOf(HasSubstr("host '" + host_name() + "'"), HasSubstr("dmesg"),
                      HasSubstr("nvidia-smi")));
  }
}

TEST(GpuErrors, AreNotThoseOfOtherThings) {
  for (const char* text :
       {"", "out of memory",
        "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate",
        "an uncorrectable mistake in the recipe", "CUDA error: invalid argument",
        "NCCL error in: NCCLUtils.cpp:94, remote process exited or there was a network error"}) {
    EXPECT_FALSE(gpu_error_of(text)) << text;
  }
}

// As LibTorch words it, where the memory that it holds would do in one piece.
std::string out_of_memory(const std::string& wanted, const std::string& unallocated) {
  return "CUDA out of memory. Tried to allocate " + wanted +
         ". GPU 0 has a total capacity of 79.19 GiB of which 1.50 GiB is free. Of the allocated "
         "memory 60.00 GiB is allocated by PyTorch, and " +
         unallocated +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
         "setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";
}

TEST(GpuErrors, NameExpandableSegmentsWhereMemoryIsInPieces) {
  const auto advice = [](const std::string& text) { return gpu_error_of(text).value().advice; };
  EXPECT_THAT(advice(out_of_memory("2.00 GiB", "3.00 GiB")), HasSubstr("expandable_segments:True"));
  EXPECT_THAT(advice(out_of_memory("900.00 MiB", "1.00 GiB")), HasSubstr("expandable_segments"));
  EXPECT_THAT(advice(out_of_memory("20.00 MiB", "512 bytes")), Not(HasSubstr("expandable")));
  EXPECT_THAT(advice(out_of_memory("2.00 GiB", "300.00 MiB")), Not(HasSubstr("expandable")));
  EXPECT_THAT(advice("CUDA out of memory. Tried to allocate more than 1EB memory."),
              Not(HasSubstr("expandable")));
  EXPECT_THAT(advice("CUDA out of memory: x is reserved by PyTorch but unallocated"),
              Not(HasSubstr("expandable")));
}

TEST(GpuErrors, AreRaisedByTheirCode) {
  const GpuError users{.code = kUser, .advice = ""};
  EXPECT_THROW(users.raise("it failed"), UserError);
  try {
    GpuError{.code = kRestart, .advice = "\nLook there."}.raise("it failed");
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "it failed\nLook there.");
  }
}

}  // namespace
}  // namespace decent
