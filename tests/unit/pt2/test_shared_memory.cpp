#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "decent/core/error.h"
#include "decent/pt2/analyse/shared_memory.h"

namespace decent::pt2 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::array<std::byte, 64> kRecord{};  // 16 numbers

Payload view(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
             std::int64_t offset, bool trains) {
  Payload payload;
  payload.record = "data/weights/weight_0";
  payload.storage = kRecord;
  payload.dtype = ScalarType::float32;
  payload.sizes = sizes;
  payload.strides = strides;
  payload.storage_offset = offset;
  payload.requires_grad = trains;
  return payload;
}

// "" where it is fine.
std::string refusal_of(const Payload& a, const Payload& b,
                       const std::set<std::string>& written = {}) {
  ExportedProgram program;
  program.weights = {{"a", a}, {"b", b}};
  try {
    refuse_shared_memory(program, written, "model 'm.pt2'");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SharedMemory, OfATransposeIsRefused) {
  EXPECT_THAT(refusal_of(view({4, 4}, {4, 1}, 0, true), view({4, 4}, {1, 4}, 0, true)),
              AllOf(StartsWith("model 'm.pt2' holds 'b' and 'a' as different views"),
                    HasSubstr("weight.t()")));
}

TEST(SharedMemory, OfATensorThatIsWrittenIsRefused) {
  const Payload all = view({2, 8}, {8, 1}, 0, false);
  const Payload row = view({8}, {1}, 8, false);
  EXPECT_EQ(refusal_of(all, row), "");
  EXPECT_THAT(refusal_of(all, row, {"a"}), HasSubstr("of which training changes 'a'"));
  EXPECT_THAT(refusal_of(all, row, {"b"}), HasSubstr("of which training changes 'b'"));
}

TEST(SharedMemory, OfTiedWeightsIsFine) {
  const Payload weight = view({4, 4}, {4, 1}, 0, true);
  EXPECT_EQ(refusal_of(weight, weight), "");
  Payload buffer = weight;  // register_buffer("w", layer.weight.data)
  buffer.requires_grad = false;
  EXPECT_EQ(refusal_of(weight, buffer), "");
}

TEST(SharedMemory, WithoutASharedElementIsFine) {
  EXPECT_EQ(refusal_of(view({8}, {1}, 0, true), view({8}, {1}, 8, true)), "");
  EXPECT_EQ(refusal_of(view({4, 2}, {4, 1}, 0, true), view({4, 2}, {4, 1}, 2, true)), "");
  EXPECT_EQ(refusal_of(view({0}, {1}, 3, true), view({16}, {1}, 0, true)), "");
  EXPECT_THAT(refusal_of(view({4, 2}, {4, 1}, 0, true), view({4, 2}, {4, 1}, 1, true)),
              HasSubstr("different views"));
}

TEST(SharedMemory, OfExpandedTensorsIsSeen) {
  const Payload expanded = view({1 << 20, 4}, {0, 1}, 4, false);
  EXPECT_EQ(refusal_of(expanded, view({2, 4}, {8, 1}, 0, true)), "");
  EXPECT_THAT(refusal_of(expanded, view({2, 4}, {7, 1}, 0, true)), HasSubstr("changes 'b'"));
}

TEST(SharedMemory, OfOtherElementTypesIsSeen) {
  Payload bytes = view({4}, {1}, 60, false);
  bytes.dtype = ScalarType::uint8;
  EXPECT_THAT(refusal_of(bytes, view({16}, {1}, 0, true)), HasSubstr("training changes 'b'"));
  bytes.storage_offset = 32;
  EXPECT_EQ(refusal_of(bytes, view({8}, {1}, 0, true)), "");
}

}  // namespace
}  // namespace decent::pt2
