// Samples: transforms, extents that differ, samples that are left out.

#include "decent/data/samples.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "../support/refusal.h"
#include "decent/core/error.h"
#include "decent/core/torch_dtype.h"
#include "decent/data/field_of_batch.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal;

constexpr std::array<std::size_t, 2> kBoth = {0, 1};

// Sample i: x = [i, i + 0.5], or where extents differ i + 1 values of i; y = i. Some are broken.
// Those of which extents differ may have a padding.
class NumberedSamples final : public Source {
 public:
  explicit NumberedSamples(std::int64_t size, bool differ = false,
                           std::set<std::int64_t> broken = {},
                           std::optional<std::int64_t> padding = {})
      : size_(size),
        broken_(std::move(broken)),
        fields_({{.name = "x",
                  .dtype = DType::float32,
                  .shape = {differ ? kAnyExtent : 2},
                  .padding = padding},
                 {.name = "y", .dtype = DType::int64, .shape = {}}}) {}

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }
  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    for (const std::int64_t index : indices) {
      check(index);
      const std::array<float, 2> x = {static_cast<float>(index), static_cast<float>(index) + 0.5F};
      const std::size_t bytes = fields_[field].sample_bytes();
      std::memcpy(out, field == 0 ? static_cast<const void*>(x.data()) : &index, bytes);
      out += bytes;
    }
  }
  void read_one(std::span<const std::size_t> fields, std::int64_t index,
                std::span<HostArray> sample) const override {
    for (const std::size_t field : fields) {
      if (fields_[field].fixed()) {
        Source::read_one({&field, 1}, index, sample);
      } else {
        read_differing(index, sample[field]);
      }
    }
  }

 private:
  void read_differing(std::int64_t index, HostArray& out) const {
    check(index);
    out.dtype = DType::float32;
    out.shape = {index + 1};
    out.bytes.resize(static_cast<std::size_t>(index + 1) * sizeof(float));
    std::fill(out.as<float>().begin(), out.as<float>().end(), static_cast<float>(index));
  }
  void check(std::int64_t index) const {
    if (broken_.contains(index)) throw UserError("sample " + std::to_string(index) + " is broken");
  }

  std::int64_t size_;
  std::set<std::int64_t> broken_;
  std::vector<Field> fields_;
};

// x becomes its first value plus a number that is drawn, of shape [1].
class FirstPlusDraw final : public SampleTransform {
 public:
  std::vector<Field> fields(std::vector<Field> before) override {
    before[0].shape = {1};
    return before;
  }
  void apply(std::vector<HostArray>& sample, SampleRandom& random) const override {
    const float value = sample[0].as<float>()[0] + static_cast<float>(random.uniform());
    sample[0].shape = {1};
    sample[0].bytes.resize(sizeof value);
    sample[0].as<float>()[0] = value;
  }
  bool random() const override { return true; }
};

Transforms first_plus_draw(int times = 1) {
  Transforms transforms;
  for (int i = 0; i < times; ++i)
    transforms.of_samples.push_back(std::make_unique<FirstPlusDraw>());
  return transforms;
}

Batch read(const Samples& samples, std::vector<std::int64_t> indices, std::int64_t epoch = 0) {
  return samples.read(kBoth, indices, epoch, HostMemory::pageable);
}

std::vector<std::int64_t> labels(const Batch& batch) {
  const auto* data = batch.fields.at(1).const_data_ptr<std::int64_t>();
  return {data, data + batch.samples()};
}

float drawn(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::uint64_t place) {
  return static_cast<float>(SampleRandom(seed, static_cast<std::uint64_t>(epoch),
                                         static_cast<std::uint64_t>(index), place)
                                .uniform());
}

TEST(Samples, WithoutTransformsAreTheSource) {
  const Samples samples(std::make_unique<NumberedSamples>(5));
  const Batch batch = read(samples, {3, 1});
  EXPECT_TRUE(at::equal(batch.fields[0], at::tensor({3.0F, 3.5F, 1.0F, 1.5F}).reshape({2, 2})));
  EXPECT_THAT(labels(batch), ElementsAre(3, 1));
}

TEST(Samples, WhatIsDrawnIsAFunctionOfSeedEpochSampleAndPlace) {
  const Samples samples(std::make_unique<NumberedSamples>(5), first_plus_draw(2), 7);
  EXPECT_THAT(samples.fields()[0].shape, ElementsAre(1));
  for (const std::int64_t epoch : {0, 3}) {
    const Batch batch = read(samples, {4, 2}, epoch);
    ASSERT_EQ(batch.fields[0].sizes(), at::IntArrayRef({2, 1}));
    for (const auto& [row, index] : {std::pair{0, 4}, {1, 2}}) {
      const float wanted =
          static_cast<float>(index) + drawn(7, epoch, index, 0) + drawn(7, epoch, index, 1);
      EXPECT_FLOAT_EQ(batch.fields[0][row][0].item<float>(), wanted);
    }
  }
}

TEST(Samples, OfOneBatchHaveOneShape) {
  const Samples samples(std::make_unique<NumberedSamples>(5, /*differ=*/true));
  EXPECT_EQ(read(samples, {2, 2}).fields[0].sizes(), at::IntArrayRef({2, 3}));
  EXPECT_THAT(refusal([&] {
                read(samples, {2, 1});
              }),
              HasSubstr("the samples of a batch differ in field 'x': [3] and [2]"));
  const Samples same(std::make_unique<NumberedSamples>(5, /*differ=*/true), first_plus_draw());
  EXPECT_EQ(read(same, {2, 1}).fields[0].sizes(), at::IntArrayRef({2, 1}));
}

TEST(Samples, OfABatchArePaddedToItsLongest) {
  const Samples samples(std::make_unique<NumberedSamples>(5, true, std::set<std::int64_t>{3}, -7),
                        {}, 0, std::make_shared<LeftOut>(LeftOut::Instead::nothing));
  const Batch batch = read(samples, {0, 3, 2, 1});
  EXPECT_TRUE(at::equal(batch.fields[0],
                        at::tensor({0, -7, -7, 2, 2, 2, 1, 1, -7}, at::kFloat).reshape({3, 3})));
  EXPECT_THAT(labels(batch), ElementsAre(0, 2, 1));
  EXPECT_EQ(read(samples, {1, 0}).fields[0].sizes(), at::IntArrayRef({2, 2}));
}

// Each dimension at its end, whatever the type.
TEST(FieldOfBatch, IsPaddedInAllDimensions) {
  for (const DType dtype : {DType::boolean, DType::uint8, DType::float16, DType::int64}) {
    const Field field{.name = "x", .dtype = dtype, .shape = {kAnyExtent, kAnyExtent}, .padding = 1};
    FieldOfBatch batch(field, 3, HostMemory::pageable);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{1, 3}, {2, 1}, {0, 2}}) {
      const auto elements = static_cast<std::size_t>(shape[0] * shape[1]);
      batch.add({dtype, shape, std::vector<std::byte>(elements * size_of(dtype))});
    }
    at::Tensor wanted = at::ones({3, 2, 3}, at::TensorOptions(scalar_type(dtype)));
    wanted[0].narrow(0, 0, 1).narrow(1, 0, 3).zero_();
    wanted[1].narrow(0, 0, 2).narrow(1, 0, 1).zero_();
    EXPECT_TRUE(at::equal(std::move(batch).tensor(), wanted)) << name_of(dtype);
  }
}

TEST(Samples, ABrokenOneIsAnError) {
  const Samples samples(std::make_unique<NumberedSamples>(5, false, std::set<std::int64_t>{3}));
  EXPECT_EQ(refusal([&] { read(samples, {2, 3}); }), "sample 3 is broken");
}

TEST(Samples, InTrainingTheNextTakesThePlaceOfABrokenOne) {
  for (const bool differ : {false, true}) {
    const auto left_out = std::make_shared<LeftOut>(LeftOut::Instead::next_sample);
    const Samples samples(
        std::make_unique<NumberedSamples>(5, differ, std::set<std::int64_t>{3, 4}),
        first_plus_draw(differ ? 1 : 0), 0, left_out);
    EXPECT_THAT(labels(read(samples, {2, 4, 3})), ElementsAre(2, 0, 0));
    const auto list = left_out->take_new();
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list.at(3), "sample 3 is broken");
    read(samples, {3});
    EXPECT_TRUE(left_out->take_new().empty());  // each is told once
  }
}

TEST(Samples, InEvaluationABrokenOneIsMissing) {
  const auto left_out = std::make_shared<LeftOut>(LeftOut::Instead::nothing);
  const Samples samples(std::make_unique<NumberedSamples>(5, false, std::set<std::int64_t>{1, 3}),
                        {}, 0, left_out);
  const Batch batch = read(samples, {0, 1, 2, 3});
  EXPECT_THAT(labels(batch), ElementsAre(0, 2));
  EXPECT_EQ(batch.fields[0].sizes(), at::IntArrayRef({2, 2}));
  EXPECT_TRUE(read(samples, {3, 1}).fields.empty());
  EXPECT_EQ(left_out->take_new().size(), 2U);
}

TEST(Samples, WhereAllAreBrokenItIsAnError) {
  std::set<std::int64_t> all;
  for (std::int64_t i = 0; i < 300; ++i) all.insert(i);
  const Samples samples(std::make_unique<NumberedSamples>(300, false, all), {}, 0,
                        std::make_shared<LeftOut>(LeftOut::Instead::next_sample));
  EXPECT_THAT(refusal([&] { read(samples, {250}); }), HasSubstr("is broken"));
}

}  // namespace
}  // namespace decent
