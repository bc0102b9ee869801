#include "decent/parallel/storage.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/core/error.h"
#include "problem.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::scattered;

at::Tensor floats(at::IntArrayRef sizes, double seed = 0) {
  return scattered(sizes, seed).to(at::kFloat);
}

std::string refusal(const NamedTensors& parameters, const NamedTensors& others = {}) {
  try {
    check_storage(parameters, others);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CheckStorage, AcceptsOrdinaryParameters) {
  const at::Tensor base = floats({20});
  EXPECT_EQ(refusal({{"a", floats({3, 4})},
                     {"transposed", floats({3, 4}).t()},
                     {"double", scattered({2}, 0)},
                     {"scalar", floats({})},
                     {"empty", floats({0, 3})}},
                    {{"buffer", at::zeros({5}, at::kLong)}}),
            "accepted");
  EXPECT_EQ(refusal({{"left", base.narrow(0, 0, 10)}, {"right", base.narrow(0, 10, 10)}}),
            "accepted");
  EXPECT_EQ(refusal({{"right", base.narrow(0, 10, 10)}}, {{"left", base.narrow(0, 0, 10)}}),
            "accepted");
}

TEST(CheckStorage, LetsBuffersShareAmongThemselves) {
  const at::Tensor base = floats({20});
  EXPECT_EQ(refusal({{"a", floats({2})}}, {{"b", base}, {"c", base.narrow(0, 3, 4)}}), "accepted");
}

TEST(CheckStorage, NamesOverlappingTensors) {
  const at::Tensor base = floats({20});
  const at::Tensor left = base.narrow(0, 0, 11);
  const at::Tensor right = base.narrow(0, 10, 10);
  const auto both = AllOf(HasSubstr("'left'"), HasSubstr("'right'"), HasSubstr("share memory"));
  EXPECT_THAT(refusal({{"left", left}, {"right", right}}), both);
  EXPECT_THAT(refusal({{"right", right}, {"left", left}}), both);
  EXPECT_THAT(refusal({{"right", right}}, {{"left", left}}), both);
  EXPECT_THAT(refusal({{"left", left}}, {{"right", right}}), both);
}

// Sorted by start, an overlap need not be with the first tensor, nor with the one just before.
TEST(CheckStorage, SeesOverlapsAmongMany) {
  const at::Tensor base = floats({20});
  EXPECT_THAT(refusal({{"first", base.narrow(0, 0, 5)},
                       {"left", base.narrow(0, 5, 10)},
                       {"right", base.narrow(0, 12, 8)}}),
              AllOf(HasSubstr("'left'"), HasSubstr("'right'")));
  EXPECT_THAT(refusal({{"outer", base}},
                      {{"first", base.narrow(0, 1, 2)}, {"second", base.narrow(0, 15, 2)}}),
              HasSubstr("'outer'"));
  EXPECT_THAT(refusal({{"late", base.narrow(0, 15, 2)}},
                      {{"outer", base}, {"early", base.narrow(0, 1, 2)}}),
              AllOf(HasSubstr("'outer'"), HasSubstr("'late'")));
}

TEST(CheckStorage, RefusesElementsThatShareOrSkipMemory) {
  const auto share = AllOf(HasSubstr("'w'"), HasSubstr("share memory or have gaps"));
  EXPECT_THAT(refusal({{"w", floats({1, 3}).expand({4, 3})}}), share);
  const at::Tensor base = floats({4, 2});
  EXPECT_THAT(refusal({{"w", base.select(1, 0)}, {"v", base.select(1, 1)}}), share);
}

TEST(CheckStorage, RefusesOtherElementTypes) {
  EXPECT_THAT(refusal({{"w", floats({2}).to(at::kHalf)}}),
              AllOf(HasSubstr("'w'"), HasSubstr("is float16"), HasSubstr("model.float()")));
  EXPECT_THAT(refusal({{"w", floats({2}).to(at::kBFloat16)}}), HasSubstr("is bfloat16"));
  EXPECT_THAT(refusal({{"w", floats({2}).to(at::kComplexFloat)}}), HasSubstr("'w'"));
}

TEST(CheckStorage, WantsOneDeviceThatTrains) {
  const at::Tensor nowhere = floats({2}).to(at::kMeta);
  EXPECT_THAT(refusal({{"w", nowhere}}), HasSubstr("'w' is on meta, not on the CPU or a CUDA GPU"));
  EXPECT_THAT(refusal({{"v", floats({2})}, {"w", nowhere}}),
              AllOf(HasSubstr("'w' is on meta"), HasSubstr("'v' on cpu"), HasSubstr("one device")));
}

TEST(BuildBuckets, KeepsValuesAndStrides) {
  const NamedTensors parameters = {
      {"plain", floats({3, 5}, 1).requires_grad_()},
      {"transposed", floats({7, 3}, 2).t().requires_grad_()},
      {"channels_last",
       floats({2, 3, 4, 5}, 3).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_()},
      {"scalar", floats({}, 4).requires_grad_()},
      {"empty", floats({0, 2}, 5).requires_grad_()}};
  NamedTensors before;
  for (const auto& [name, tensor] : parameters) before.emplace_back(name, tensor.detach().clone());
  std::vector<std::vector<std::int64_t>> strides;
  for (const auto& entry : parameters) strides.push_back(entry.second.strides().vec());

  const std::vector<Bucket> buckets = build_buckets(parameters, 25);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_THAT(buckets[0].parameters, ::testing::ElementsAre(4, 3, 2, 1, 0));
  for (std::size_t i = 0; i < buckets[0].parameters.size(); ++i) {
    const std::size_t p = buckets[0].parameters[i];
    const at::Tensor& tensor = parameters[p].second;
    EXPECT_TRUE(at::equal(tensor, before[p].second)) << parameters[p].first;
    EXPECT_EQ(tensor.strides(), strides[p]) << parameters[p].first;
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad());
    EXPECT_TRUE(tensor.storage().is_alias_of(buckets[0].x.storage()));
    EXPECT_EQ(tensor.storage_offset(), buckets[0].offsets[i]);
    EXPECT_EQ(buckets[0].offsets[i] * 4 % 128, 0);
  }
}

// Every holder of a tensor sees the move: the bucket is where all of them read and write.
TEST(BuildBuckets, MovesAllHolders) {
  const at::Tensor parameter = floats({4}).requires_grad_();
  const at::Tensor other_holder = parameter;
  std::vector<Bucket> buckets = build_buckets({{"w", parameter}}, 25);
  buckets[0].x.fill_(3);
  EXPECT_TRUE(at::equal(other_holder, at::full({4}, 3.0F)));
}

TEST(BuildBuckets, IsZeroBetweenParameters) {
  const std::vector<Bucket> buckets =
      build_buckets({{"a", floats({5})}, {"b", scattered({3}, 1)}, {"c", floats({33})}}, 25);
  ASSERT_EQ(buckets.size(), 3U);  // float, double, float
  EXPECT_EQ(buckets[1].x.scalar_type(), at::kDouble);
  EXPECT_EQ(buckets[1].x.narrow(0, 3, 13).abs().sum().item<double>(), 0);
  EXPECT_EQ(buckets[0].x.numel(), 64);
  EXPECT_EQ(buckets[0].x.narrow(0, 33, 31).abs().sum().item<double>(), 0);
  EXPECT_EQ(buckets[2].x.narrow(0, 5, 27).abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace decent
