#include "decent/report/dry_run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

DryRunFacts facts() {
  DryRunFacts facts;
  facts.bucket_bytes = {4096};
  facts.averages_weights = false;
  return facts;
}

TEST(DryRunText, TellsOfTheGpusMemoryWhereThereIsOne) {
  EXPECT_THAT(dry_run_lines(facts()), Not(Contains(HasSubstr("GPU"))));
  DryRunFacts on_a_gpu = facts();
  on_a_gpu.gpu = {
      {.used = 1.5 * (1 << 30), .reserved = 2.0 * (1 << 30), .total = 80.0 * (1 << 30)}};
  EXPECT_THAT(dry_run_lines(on_a_gpu),
              Contains(HasSubstr("peak of the GPU likewise: 1.5 GiB in tensors, 2.0 GiB held by "
                                 "LibTorch, of 80.0 GiB; without exchange and optimizer")));
}

}  // namespace
}  // namespace decent
