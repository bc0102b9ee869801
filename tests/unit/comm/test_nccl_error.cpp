#include "decent/comm/nccl_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const c10::SourceLocation kHere = {"f", "file.cpp", 1};

// As c10d words what NCCL reports.
c10::DistBackendError nccl_error(const std::string& kind, const std::string& cause) {
  return {
      kHere,
      "NCCL error in: ../ProcessGroupNCCL.cpp:3690, " + kind +
          " (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\nncclCause: Call failed."
          "\nLast error:\n" +
          cause + "\nException raised from f at file.cpp"};
}

TEST(NcclReason, KeepsTheLineOfTheLastError) {
  EXPECT_THAT(
      nccl_reason(nccl_error("invalid usage", "Duplicate GPU detected : rank 1 and rank 0")),
      AllOf(StartsWith("NCCL error in: "),
            ::testing::EndsWith("NCCL version 2.28.9: Duplicate GPU detected : rank 1 and "
                                "rank 0")));
  EXPECT_EQ(nccl_reason(std::runtime_error("short\nLast error:\n\nmore")), "short");
  EXPECT_EQ(nccl_reason(std::runtime_error("short\nLast error:\n")), "short");
  EXPECT_EQ(nccl_reason(std::runtime_error("one\ntwo")), "one");
}

TEST(IsOfThisDevice, TellsCudasErrorsFromNccls) {
  EXPECT_TRUE(is_of_this_device(c10::AcceleratorError(kHere, 710, "device-side assert triggered")));
  EXPECT_TRUE(is_of_this_device(c10::OutOfMemoryError(kHere, "Tried to allocate 2 GiB")));
  EXPECT_TRUE(is_of_this_device(std::runtime_error("CUDA: update: misaligned address")));
  EXPECT_TRUE(is_of_this_device(std::runtime_error("CUDA driver error: unknown error")));
  EXPECT_FALSE(is_of_this_device(nccl_error("unhandled cuda error", "Cuda failure 'x'")));
  EXPECT_FALSE(is_of_this_device(std::runtime_error("Connection reset by peer, CUDA error")));
}

// What a call ends with that fails with `error`.
template <typename Expected, typename E>
std::string thrown_for(const E& error) {
  try {
    try {
      throw error;
    } catch (const std::exception& caught) {
      throw_nccl_error("exchange failed", caught);
    }
  } catch (const Expected& result) {
    return result.what();
  }
}

TEST(ThrowNcclError, LeavesTheGpusErrorsAsTheyAre) {
  EXPECT_THAT(thrown_for<c10::AcceleratorError>(
                  c10::AcceleratorError(kHere, 710, "CUDA error: device-side assert triggered")),
              StartsWith("CUDA error: device-side assert triggered"));
  EXPECT_THAT(thrown_for<c10::OutOfMemoryError>(c10::OutOfMemoryError(kHere, "CUDA out of memory")),
              StartsWith("CUDA out of memory"));
}

TEST(ThrowNcclError, SaysWhatTheUserCanMend) {
  EXPECT_THAT(
      thrown_for<UserError>(nccl_error("unhandled cuda error", "Cuda failure 2 'out of memory'")),
      AllOf(StartsWith("exchange failed: NCCL error in: "),
            HasSubstr("'out of memory'\nA smaller data.batch_size"),
            Not(HasSubstr("Exception raised"))));
  EXPECT_THAT(thrown_for<UserError>(nccl_error("invalid usage", "Duplicate GPU detected : rank 1")),
              HasSubstr("Duplicate GPU detected : rank 1\nNCCL needs a GPU of its own"));
}

TEST(ThrowNcclError, TakesAllElseForALostPeer) {
  EXPECT_THAT(thrown_for<PeerLost>(
                  nccl_error("remote process exited", "socketProgress: Connection closed")),
              HasSubstr("NCCL version 2.28.9: socketProgress: Connection closed"));
  EXPECT_THAT(
      thrown_for<PeerLost>(nccl_error("unhandled cuda error",
                                      "Cuda failure 214 'uncorrectable ECC error encountered'")),
      HasSubstr("fault of the GPU"));
}

}  // namespace
}  // namespace decent
