#include "decent/parallel/bucket_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

constexpr double kMiB = 1024 * 1024;

std::vector<ParameterSize> float_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<ParameterSize> result;
  for (const std::int64_t size : sizes) result.push_back({size, 4, 6});
  return result;
}

// "2@0 1@32 | 0@0": parameter at offset, buckets in order.
std::string text_of(const std::vector<PlannedBucket>& buckets) {
  std::string text;
  for (const PlannedBucket& bucket : buckets) {
    if (!text.empty()) text += " |";
    for (const Placement& placement : bucket.placements) {
      text += (text.empty() ? "" : " ") + std::to_string(placement.parameter) + "@" +
              std::to_string(placement.offset);
    }
  }
  return text;
}

TEST(BucketPlan, GoesBackwardsAtOffsetsOf128Bytes) {
  const auto plan = plan_buckets(float_sizes({32, 33, 1, 64}), 25);
  EXPECT_EQ(text_of(plan), "3@0 2@64 1@96 0@160");
  EXPECT_EQ(plan[0].numel, 192);
  EXPECT_EQ(plan[0].element_bytes, 4);
  EXPECT_EQ(plan[0].dtype, 6);
}

TEST(BucketPlan, AlignsByBytesNotElements) {
  const std::vector<ParameterSize> doubles = {{5, 8, 7}, {17, 8, 7}, {1, 8, 7}};
  EXPECT_EQ(text_of(plan_buckets(doubles, 25)), "2@0 1@16 0@48");
}

TEST(BucketPlan, ClosesABucketOnceItIsFull) {
  const double bucket = 4 * 64 / kMiB;  // two parameters of 32
  EXPECT_EQ(text_of(plan_buckets(float_sizes({32, 32, 32, 32, 32}), bucket)),
            "4@0 3@32 | 2@0 1@32 | 0@0");
  // One byte more takes a third; a parameter larger than a bucket is not split, and closes the one
  // it is in.
  EXPECT_EQ(text_of(plan_buckets(float_sizes({32, 32, 32, 32, 32}), bucket + 1 / kMiB)),
            "4@0 3@32 2@64 | 1@0 0@32");
  EXPECT_EQ(text_of(plan_buckets(float_sizes({1, 1000, 1}), bucket)), "2@0 1@32 | 0@0");
}

TEST(BucketPlan, TinyBucketsHoldOneParameterEach) {
  EXPECT_EQ(text_of(plan_buckets(float_sizes({1, 2, 3}), 1e-9)), "2@0 | 1@0 | 0@0");
}

TEST(BucketPlan, TakesFractionsOfAMebibyte) {
  // 0.25 MiB are 65536 floats.
  EXPECT_EQ(text_of(plan_buckets(float_sizes({100, 65536, 65505}), 0.25)), "2@0 | 1@0 | 0@0");
  EXPECT_EQ(text_of(plan_buckets(float_sizes({100, 65536, 65504}), 0.25)), "2@0 1@65504 | 0@0");
}

TEST(BucketPlan, NeverMixesElementTypes) {
  const std::vector<ParameterSize> mixed = {{1, 4, 6}, {1, 4, 6}, {1, 8, 7}, {1, 4, 6}};
  const auto plan = plan_buckets(mixed, 25);
  EXPECT_EQ(text_of(plan), "3@0 | 2@0 | 1@0 0@32");
  EXPECT_EQ(plan[1].dtype, 7);
  EXPECT_EQ(plan[1].element_bytes, 8);
  EXPECT_EQ(plan[2].dtype, 6);
}

TEST(BucketPlan, PlacesEmptyParameters) {
  EXPECT_EQ(text_of(plan_buckets(float_sizes({0, 4, 0}), 25)), "2@0 1@0 0@32");
  EXPECT_TRUE(plan_buckets({}, 25).empty());
}

}  // namespace
}  // namespace decent
