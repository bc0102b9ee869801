// Hashes that tell tensors of workers apart, whatever passes them to the host.

#include "decent/parallel/same_bits.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

std::vector<at::Tensor> of_many_sizes() {
  std::vector<at::Tensor> tensors;
  for (const std::int64_t size : {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 100, 1000})
    tensors.push_back(at::arange(size, at::kFloat).mul_(0.37).sin_());
  tensors.push_back(at::arange(35, at::kDouble).view({5, 7}).t());
  tensors.push_back(at::arange(5, at::kChar));
  tensors.push_back(at::scalar_tensor(true, at::kBool));
  return tensors;
}

std::vector<std::int64_t> numbers(const at::Tensor& hashes) {
  const auto* const begin = hashes.const_data_ptr<std::int64_t>();
  return {begin, begin + hashes.numel()};
}

// Workers of other versions must come to the same.
TEST(BitHashes, AreTheOnesTheyAlwaysWere) {
  const std::vector<at::Tensor> tensors = {at::arange(1000, at::kInt), at::arange(3, at::kDouble)};
  EXPECT_EQ(numbers(bit_hashes(tensors)),
            (std::vector<std::int64_t>{-6875763813752017877, -8383671880510420313}));
}

TEST(BitHashes, AreTheSameThroughAnyPassage) {
  const std::vector<at::Tensor> tensors = of_many_sizes();
  const std::vector<std::int64_t> expected = numbers(bit_hashes(tensors));
  for (const std::int64_t bytes : {32, 40, 64, 100, 1024, 1 << 20}) {
    const at::Tensor passage = at::full({bytes}, 0xFF, at::kByte);
    EXPECT_EQ(hashes_through(passage, tensors), expected) << bytes;
  }
}

TEST(BitHashes, DifferWhereOneBitDoes) {
  std::vector<at::Tensor> tensors = of_many_sizes();
  const std::vector<std::int64_t> before = numbers(bit_hashes(tensors));
  const std::size_t changed = 10;
  tensors[changed].select(0, 77).mul_(1.0000001);
  const std::vector<std::int64_t> after = hashes_through(at::empty({64}, at::kByte), tensors);
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(after[i] != before[i], i == changed) << i;
}

}  // namespace
}  // namespace decent
