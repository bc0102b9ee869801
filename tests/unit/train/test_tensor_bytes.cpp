#include "decent/train/tensor_bytes.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

TEST(CheckpointBytes, AreThoseOfAllFilesOfAFolder) {
  const NamedTensors state = {{"model.w", at::empty({10}, at::kFloat)},
                              {"optimizer.w.exp_avg", at::empty({10}, at::kFloat)},
                              {"buffer.mean", at::empty({2}, at::kFloat)}};
  EXPECT_EQ(bytes_of(state), 88);
  EXPECT_EQ(checkpoint_bytes(state, 4, /*copies_alike=*/false), 4 * 88);
  EXPECT_EQ(checkpoint_bytes(state, 4, /*copies_alike=*/true), 88 + 3 * 8);
  EXPECT_EQ(checkpoint_bytes(state, 1, /*copies_alike=*/true), 88);
}

}  // namespace
}  // namespace decent
