// The checksum by which workers and checkpoints tell other data of the same shape.

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "decent/checkpoint/checksum.h"
#include "decent/task/sources.h"

namespace decent {
namespace {

// One float32 a sample: its number.
class Numbers : public Source {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return size_; }
  void read(std::size_t, std::span<const std::int64_t> indices, std::byte* out) const override {
    for (const std::int64_t index : indices) {
      read_.insert(index);
      const auto value = static_cast<float>(index);
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    }
  }
  mutable std::set<std::int64_t> read_;

 private:
  std::int64_t size_;
  std::vector<Field> fields_ = {{.name = "x", .dtype = DType::float32, .shape = {}}};
};

TEST(Content, ReadsAllOfAFewSamples) {
  const Numbers source(3);
  std::string bytes;
  for (const float value : {0.0F, 1.0F, 2.0F}) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  EXPECT_EQ(content_of(source), checksum_of(bytes));
}

TEST(Content, SpreadsOver64OfMany) {
  const Numbers source(6400);
  content_of(source);
  std::set<std::int64_t> expected;
  for (std::int64_t i = 0; i < 64; ++i) expected.insert(100 * i);
  EXPECT_EQ(source.read_, expected);
}

TEST(Content, ReadsDistinctSamplesWhateverTheSize) {
  for (const std::int64_t size : {64, 65, 100, 127, 128, 1442}) {
    const Numbers source(size);
    content_of(source);
    EXPECT_EQ(source.read_.size(), 64U) << size;
    EXPECT_LT(*source.read_.rbegin(), size);
  }
}

TEST(Content, DoesNotOverflow) {
  const Numbers source(std::int64_t{1} << 62);
  content_of(source);
  EXPECT_EQ(source.read_.size(), 64U);
  EXPECT_GE(*source.read_.begin(), 0);
}

}  // namespace
}  // namespace decent
