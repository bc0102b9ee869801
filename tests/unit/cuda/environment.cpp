// All tests of this program need a GPU.

#include <gtest/gtest.h>

#include "../support/child_process.h"
#include "decent/comm/cuda.h"

namespace decent {
namespace {

class Gpu : public ::testing::Environment {
 public:
  void SetUp() override {
    const std::string problem = testing::in_child([] { return find_cuda_devices().problem; });
    if (!problem.empty()) GTEST_SKIP() << "no GPU: " << problem;
  }
};

const ::testing::Environment* const kGpu = ::testing::AddGlobalTestEnvironment(new Gpu);

}  // namespace
}  // namespace decent
