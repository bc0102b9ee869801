// cutmix: what it makes of batches, which boxes it draws, and what it refuses.

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../support/refusal.h"
#include "decent/data/samples.h"
#include "waves.h"

namespace decent {
namespace {

using testing::add_batch_transform;
using testing::batch_of;
using testing::kClasses;
using testing::refusal;
using testing::share_of;
using testing::Waves;

// Odd, so that the middle of a box can be told from its sides; see middle_of().
constexpr std::int64_t kHeight = 5;
constexpr std::int64_t kWidth = 7;
constexpr std::int64_t kImages = 200'000;

std::unique_ptr<Waves> images() {
  return std::make_unique<Waves>(kImages, DType::float32, DType::int64, /*names=*/true,
                                 std::vector<std::int64_t>{2, kHeight, kWidth});
}

Samples with(std::unique_ptr<const Source> source,
             const std::vector<std::pair<std::string, Options>>& transforms) {
  Transforms all;
  for (const auto& [name, options] : transforms) add_batch_transform(all, name, options);
  return Samples(std::move(source), std::move(all), /*seed=*/3);
}

Samples cut(const Options& given = {}) { return with(images(), {{"cutmix", given}}); }

// Which pixels of the first sample are another sample's.
at::Tensor changed_pixels(const Batch& before, const Batch& after) {
  return before.fields[0][0][0].ne(after.fields[0][0][0]);
}

struct Side {
  std::int64_t begin = 0, end = 0;
};

struct Box {
  Side rows, columns;
};

Side side_of(const at::Tensor& changed) {
  const at::Tensor places = changed.nonzero();
  if (places.numel() == 0) return {};
  return {places.min().item<std::int64_t>(), places.max().item<std::int64_t>() + 1};
}

Box box_of(const at::Tensor& changed) { return {side_of(changed.any(1)), side_of(changed.any(0))}; }

TEST(Cutmix, IsTorchvisions) {
  std::int64_t pasted = 0;
  for (std::int64_t first = 0; first < 100; ++first) {
    const std::vector<std::int64_t> indices = {first, 1001, 1017, 1003};
    const Batch before = batch_of(Samples(images()), indices);
    const Batch after = batch_of(cut(), indices);
    const at::Tensor changed = changed_pixels(before, after);
    const Box box = box_of(changed);
    const std::int64_t area =
        (box.rows.end - box.rows.begin) * (box.columns.end - box.columns.begin);
    ASSERT_EQ(changed.sum().item<std::int64_t>(), area) << "no box";
    const at::Tensor& x = before.fields[0];
    EXPECT_TRUE(at::equal(after.fields[0], at::where(changed, x.roll(1, 0), x)));
    const double own = 1 - static_cast<double>(area) / (kHeight * kWidth);
    const at::Tensor certain = at::one_hot(before.fields[1], kClasses).to(at::kFloat);
    const at::Tensor mixed = certain.roll(1, 0).mul_(1 - own).add_(certain.mul(own));
    EXPECT_TRUE(after.fields[1].allclose(mixed, 0, 1.2e-7));  // one rounding to float32
    pasted += area;
  }
  EXPECT_GT(pasted, 0);
}

// The middle of a side that is `half` to both sides of it, if the border does not cut it off. A
// side of an odd extent cannot be cut off at both ends, as `half` is less than half of the extent.
std::int64_t middle_of(const Side& side, std::int64_t half) {
  return side.begin > 0 ? side.begin + half : side.end - half;
}

// torchvision's box for a weight: half a side is that part of the extent, rounded down.
std::int64_t half_of(double weight, std::int64_t extent) {
  return static_cast<std::int64_t>(0.5 * std::sqrt(1 - weight) * static_cast<double>(extent));
}

void expect_side(const Side& side, std::int64_t middle, std::int64_t half, std::int64_t extent) {
  EXPECT_EQ(side.begin, std::max<std::int64_t>(middle - half, 0));
  EXPECT_EQ(side.end, std::min(middle + half, extent));
}

void expect_even(const std::vector<double>& counts, double draws) {
  const double share = 1 / static_cast<double>(counts.size());
  // Four standard errors: with fixed seeds, a test that passes once passes always.
  const double most = 4 * std::sqrt(draws * share * (1 - share));
  for (const double count : counts) EXPECT_NEAR(count, draws * share, most);
}

// mixup draws the same weight from the same random numbers. The shares are float32, which does not
// matter to sides that are whole numbers of pixels.
TEST(Cutmix, BoxesHaveTheAreaOfTheWeightAndAnyMiddle) {
  std::vector<double> rows(kHeight);
  std::vector<double> columns(kWidth);
  double draws = 0;
  const Samples plain(images());
  const Samples blended = with(images(), {{"mixup", {}}});
  const Samples pasted = cut();
  for (std::int64_t first = 0; first < 4000; ++first) {
    const std::vector<std::int64_t> indices = {kClasses * first, 1};
    const double weight = share_of(batch_of(blended, indices));
    const std::int64_t half_height = half_of(weight, kHeight);
    const std::int64_t half_width = half_of(weight, kWidth);
    const Batch after = batch_of(pasted, indices);
    const Box box = box_of(changed_pixels(batch_of(plain, indices), after));
    if (half_height == 0 || half_width == 0) {
      EXPECT_EQ(share_of(after), 1);
      continue;
    }
    const std::int64_t row = middle_of(box.rows, half_height);
    const std::int64_t column = middle_of(box.columns, half_width);
    ASSERT_TRUE(row >= 0 && row < kHeight && column >= 0 && column < kWidth);
    expect_side(box.rows, row, half_height, kHeight);
    expect_side(box.columns, column, half_width, kWidth);
    ++rows[static_cast<std::size_t>(row)];
    ++columns[static_cast<std::size_t>(column)];
    ++draws;
  }
  EXPECT_GT(draws, 1000);
  expect_even(rows, draws);
  expect_even(columns, draws);
}

TEST(Cutmix, IsTheSameWhicheverFieldsAreRead) {
  const Samples samples = cut();
  const std::vector<std::int64_t> indices = {7, 9, 2};
  const Batch both = batch_of(samples, indices);
  for (std::size_t field = 0; field < 2; ++field) {
    const std::array<std::size_t, 1> wanted = {field};
    EXPECT_TRUE(at::equal(samples.read(wanted, indices, 0, HostMemory::pageable).fields[0],
                          both.fields[field]));
  }
}

TEST(TransformsOfBatches, AreTakenByTurnsOfEvenChance) {
  const Samples plain(images());
  const Samples blended = with(images(), {{"mixup", {}}});
  const Samples both = with(images(), {{"mixup", {}}, {"cutmix", {}}});
  double of_mixup = 0;
  constexpr double kBatches = 400;
  for (std::int64_t first = 0; first < static_cast<std::int64_t>(kBatches); ++first) {
    const std::vector<std::int64_t> indices = {first, 1001};
    const at::Tensor x = batch_of(both, indices).fields[0];
    const at::Tensor before = batch_of(plain, indices).fields[0];
    const bool is_mixup = at::equal(x, batch_of(blended, indices).fields[0]);
    const bool is_cutmix = x.eq(before).logical_or(x.eq(before.roll(1, 0))).all().item<bool>();
    EXPECT_NE(is_mixup, is_cutmix);
    of_mixup += is_mixup ? 1 : 0;
    EXPECT_TRUE(at::equal(x, batch_of(both, indices).fields[0]));
  }
  expect_even({of_mixup, kBatches - of_mixup}, kBatches);
}

TEST(TransformsOfBatches, MustMakeTheSameFields) {
  EXPECT_EQ(refusal([] {
              with(images(), {{"mixup", {}}, {"cutmix", {{"num_classes", std::int64_t{9}}}}});
            }),
            "each batch takes one of the transforms of batches, but they make different fields; "
            "give them the same field, target and num_classes");
}

TEST(Cutmix, RefusesWhatItCannotMix) {
  const auto refused = [](const std::vector<std::int64_t>& shape, const Options& given = {},
                          DType x = DType::float32) {
    auto source = std::make_unique<Waves>(20, x, DType::int64, /*names=*/true, shape);
    return refusal([&] { with(std::move(source), {{"cutmix", given}}); });
  };
  EXPECT_EQ(refused({3, 4, 5}, {{"alpha", 0.0}}),
            "transform cutmix: alpha: expected a number above 0");
  EXPECT_EQ(refused({4, 5}),
            "transform cutmix: field 'x' is float32[4, 5] a sample; expected images [channels, "
            "height, width]");
  EXPECT_EQ(refused({3, 4, 5}, {}, DType::uint8),
            "transform cutmix: field 'x' is uint8; expected float32: put to_float in front of it");
  EXPECT_EQ(refused({3, kAnyExtent, kAnyExtent}),
            "transform cutmix: field 'x' has images of any size; put a transform in front that "
            "gives them one size: resize and center_crop, or random_resized_crop");
}

}  // namespace
}  // namespace decent
