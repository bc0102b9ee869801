#include "decent/data/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace decent {
namespace {

template <typename Value>
std::vector<Value> read_all(const Source& source, std::string_view name) {
  const std::size_t field = source.field_index(name).value();
  std::vector<std::int64_t> indices(static_cast<std::size_t>(source.size()));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<Value> values(indices.size() * source.fields()[field].sample_bytes() / sizeof(Value));
  source.read(field, indices, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// The image of sample 0 of scikit-learn's load_digits(), as its documentation shows it.
constexpr std::array<int, 64> kFirstImage = {
    0, 0,  5, 13, 9,  1, 0,  0, 0,  0,  13, 15, 10, 15, 5, 0,  0,  3, 15, 2, 0,  11,
    8, 0,  0, 4,  12, 0, 0,  8, 8,  0,  0,  5,  8,  0,  0, 9,  8,  0, 0,  4, 11, 0,
    1, 12, 7, 0,  0,  2, 14, 5, 10, 12, 0,  0,  0,  0,  6, 13, 10, 0, 0,  0};

TEST(Digits, HasItsFieldsAndSplit) {
  for (const bool train : {true, false}) {
    const auto digits = open_digits(train);
    EXPECT_EQ(digits->size(), train ? 1442 : 355);
    ASSERT_EQ(digits->fields().size(), 2U);
    EXPECT_EQ(digits->field_index("x"), 0U);
    EXPECT_EQ(digits->field_index("y"), 1U);
    EXPECT_EQ(digits->field_index("z"), std::nullopt);
    EXPECT_EQ(digits->fields()[0].dtype, DType::float32);
    EXPECT_EQ(digits->fields()[0].shape, (std::vector<std::int64_t>{1, 8, 8}));
    EXPECT_EQ(digits->fields()[1].dtype, DType::int64);
    EXPECT_TRUE(digits->fields()[1].shape.empty());
  }
}

TEST(Digits, BeginsWithTheFirstImageOfTheFile) {
  const std::vector<float> x = read_all<float>(*open_digits(true), "x");
  for (std::size_t i = 0; i < kFirstImage.size(); ++i) {
    EXPECT_EQ(x[i], static_cast<float>(kFirstImage[i]) / 16);
  }
}

// Sums and labels from scikit-learn 1.5.2's load_digits(), split by a few lines of Python.
TEST(Digits, HoldsTheRightSamples) {
  const auto sum_of = [](bool train) {
    const std::vector<float> x = read_all<float>(*open_digits(train), "x");
    return 16 * std::accumulate(x.begin(), x.end(), 0.0);
  };
  EXPECT_EQ(sum_of(true), 450566);
  EXPECT_EQ(sum_of(false), 111152);
  const std::vector<std::int64_t> train = read_all<std::int64_t>(*open_digits(true), "y");
  const std::vector<std::int64_t> test = read_all<std::int64_t>(*open_digits(false), "y");
  EXPECT_EQ(std::vector(train.begin(), train.begin() + 12),
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}));
  EXPECT_EQ(std::vector(test.begin(), test.begin() + 10),
            (std::vector<std::int64_t>{5, 0, 9, 8, 7, 1, 2, 6, 3, 4}));
  constexpr std::array<int, 10> kTestOfClass = {35, 36, 35, 36, 36, 36, 36, 35, 34, 36};
  for (std::int64_t digit = 0; digit < 10; ++digit) {
    EXPECT_EQ(std::count(test.begin(), test.end(), digit),
              kTestOfClass[static_cast<std::size_t>(digit)]);
  }
}

TEST(Digits, KeepsPixelsBetweenZeroAndOne) {
  const std::vector<float> x = read_all<float>(*open_digits(false), "x");
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  EXPECT_EQ(*low, 0);
  EXPECT_EQ(*high, 1);
}

TEST(Digits, ReadsInAnyOrderAndAgain) {
  const auto digits = open_digits(true);
  const std::vector<std::int64_t> all = read_all<std::int64_t>(*digits, "y");
  const std::vector<std::int64_t> indices = {1441, 0, 7, 7};
  std::vector<std::int64_t> labels(indices.size());
  digits->read(1, indices, reinterpret_cast<std::byte*>(labels.data()));
  EXPECT_EQ(labels, (std::vector<std::int64_t>{all[1441], all[0], all[7], all[7]}));
  digits->read(1, {}, nullptr);
}

}  // namespace
}  // namespace decent
