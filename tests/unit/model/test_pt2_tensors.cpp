// Tensors of .pt2 files as PyTorch's.

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "decent/model/pt2/module.h"

namespace decent {
namespace {

class Pt2Tensors : public ::testing::Test {
 protected:
  Pt2Tensors() : numbers_(1000) { std::iota(numbers_.begin(), numbers_.end(), 0.0F); }

  pt2::Payload view(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
                    std::int64_t offset) const {
    pt2::Payload payload;
    payload.record = "data/weights/weight_0";
    payload.storage = std::as_bytes(std::span(numbers_));
    payload.dtype = pt2::ScalarType::float32;
    payload.sizes = std::move(sizes);
    payload.strides = std::move(strides);
    payload.storage_offset = offset;
    return payload;
  }

 private:
  std::vector<float> numbers_;
};

TEST_F(Pt2Tensors, AreTheViewsThatTheyWere) {
  EXPECT_TRUE(at::equal(to_torch(view({2, 2}, {1, 2}, 10)),
                        at::tensor({10.0F, 12.0F, 11.0F, 13.0F}).view({2, 2})));
  EXPECT_EQ(to_torch(view({2, 2}, {1, 2}, 10)).strides(), at::IntArrayRef({1, 2}));
  EXPECT_TRUE(at::equal(to_torch(view({3}, {100}, 799)), at::tensor({799.0F, 899.0F, 999.0F})));
  EXPECT_TRUE(at::equal(to_torch(view({2}, {0}, 7)), at::tensor({7.0F, 7.0F})));
  EXPECT_EQ(to_torch(view({}, {}, 999)).item<float>(), 999);
  EXPECT_EQ(to_torch(view({0, 4}, {4, 1}, 1000)).numel(), 0);
}

// Thousands of views of one record would otherwise take its size each.
TEST_F(Pt2Tensors, TakeNoMoreMemoryThanTheirElements) {
  EXPECT_EQ(to_torch(view({2, 5}, {5, 1}, 500)).storage().nbytes(), 40U);
  EXPECT_EQ(to_torch(view({3}, {100}, 0)).storage().nbytes(), 12U);
}

}  // namespace
}  // namespace decent
