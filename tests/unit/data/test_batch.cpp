#include "decent/core/torch_dtype.h"
#include "decent/data/batch.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "decent/core/error.h"
#include "decent/data/digits.h"

namespace decent {
namespace {

// Two fields of known content: `id` int32 [2], {10 i, 10 i + 1} of sample i; `flag` bool [], true
// for odd samples.
class Counting final : public Source {
 public:
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return 100; }
  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    for (std::int64_t index : indices) {
      if (field == 0) {
        const std::int32_t pair[2] = {static_cast<std::int32_t>(10 * index),
                                      static_cast<std::int32_t>(10 * index + 1)};
        std::memcpy(out, pair, sizeof pair);
        out += sizeof pair;
      } else {
        *out++ = static_cast<std::byte>(index % 2);
      }
    }
  }

 private:
  std::vector<Field> fields_ = {{"id", DType::int32, {2}}, {"flag", DType::boolean, {}}};
};

TEST(ReadBatch, ReadsEveryFieldInOrder) {
  const Batch batch = read_batch(Counting(), std::vector<std::int64_t>{7, 2, 7});
  ASSERT_EQ(batch.fields.size(), 2U);
  EXPECT_TRUE(
      at::equal(batch.fields[0], at::tensor({70, 71, 20, 21, 70, 71}, at::kInt).view({3, 2})));
  EXPECT_TRUE(at::equal(batch.fields[1], at::tensor({1, 0, 1}, at::kInt).to(at::kBool)));
}

TEST(ReadBatch, ReadsChosenFieldsInTheOrderChosen) {
  const std::vector<std::size_t> fields = {1, 0, 1};
  const Batch batch = read_batch(Counting(), fields, std::vector<std::int64_t>{3});
  ASSERT_EQ(batch.fields.size(), 3U);
  EXPECT_EQ(batch.fields[0].scalar_type(), at::kBool);
  EXPECT_EQ(batch.fields[1].sizes(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_NE(batch.fields[0].data_ptr(), batch.fields[2].data_ptr());  // each tensor is fresh
}

TEST(ReadBatch, ReadsNoSamples) {
  const Batch batch = read_batch(Counting(), std::vector<std::int64_t>{});
  EXPECT_EQ(batch.fields[0].sizes(), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(batch.fields[1].sizes(), (std::vector<std::int64_t>{0}));
}

TEST(ReadBatch, GivesDigitsTheirShape) {
  const Batch batch = read_batch(*open_digits(true), std::vector<std::int64_t>{0, 1, 2, 3});
  EXPECT_EQ(batch.fields[0].sizes(), (std::vector<std::int64_t>{4, 1, 8, 8}));
  EXPECT_EQ(batch.fields[0].scalar_type(), at::kFloat);
  EXPECT_EQ(batch.fields[0][0][0][0][3].item<float>(), 13.0F / 16);
  EXPECT_TRUE(at::equal(batch.fields[1], at::tensor({0, 1, 2, 3}, at::kLong)));
}

TEST(ScalarType, NamesTheSameTypeOfTheSameSize) {
  for (int i = 0; i <= static_cast<int>(DType::float64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_of(scalar_type(dtype)), dtype);
    EXPECT_EQ(c10::elementSize(scalar_type(dtype)), size_of(dtype));
  }
  EXPECT_EQ(scalar_type(DType::bfloat16), at::kBFloat16);
  EXPECT_EQ(scalar_type(DType::float16), at::kHalf);
  EXPECT_EQ(scalar_type(DType::uint8), at::kByte);
  EXPECT_EQ(scalar_type(DType::int8), at::kChar);
}

TEST(ScalarType, RefusesTypesThatFilesCannotHold) {
  try {
    dtype_of(at::kComplexFloat);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("ComplexFloat"));
  }
}

}  // namespace
}  // namespace decent
