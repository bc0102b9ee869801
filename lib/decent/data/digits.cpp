#include "decent/data/digits.h"

#include <array>
#include <cassert>
#include <cstring>

#include "decent/core/error.h"
#include "decent/data/built_in.h"

extern "C" {
// digits.S: kSamples images of kPixels bytes from 0 to 16, row by row, then kSamples labels.
__attribute__((visibility("hidden"))) extern const std::uint8_t decent_digits[];
}

namespace decent {
namespace {

constexpr std::int64_t kSamples = 1797;
constexpr std::int64_t kPixels = 64;
constexpr float kWhite = 16;
constexpr std::size_t kClasses = 10;
constexpr int kTestEvery = 5;

std::int64_t label(std::int64_t row) { return decent_digits[kSamples * kPixels + row]; }

std::vector<std::int64_t> rows_of(bool train) {
  std::vector<std::int64_t> rows;
  std::array<int, kClasses> seen{};
  for (std::int64_t row = 0; row < kSamples; ++row) {
    const bool test = ++seen.at(static_cast<std::size_t>(label(row))) % kTestEvery == 0;
    if (test != train) rows.push_back(row);
  }
  return rows;
}

class Digits final : public Source {
 public:
  explicit Digits(bool train) : rows_(rows_of(train)) {}

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(rows_.size()); }

  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    assert(field < fields_.size());
    for (std::int64_t index : indices) {
      assert(index >= 0 && index < size());
      const std::int64_t row = rows_[static_cast<std::size_t>(index)];
      out = field == kImage ? copy_image(row, out) : copy_label(row, out);
    }
  }

 private:
  static constexpr std::size_t kImage = 0;

  static std::byte* copy_image(std::int64_t row, std::byte* out) {
    std::array<float, kPixels> image;
    const std::uint8_t* pixels = decent_digits + row * kPixels;
    for (std::size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<float>(pixels[i]) / kWhite;
    }
    std::memcpy(out, image.data(), sizeof image);
    return out + sizeof image;
  }

  static std::byte* copy_label(std::int64_t row, std::byte* out) {
    const std::int64_t digit = label(row);
    std::memcpy(out, &digit, sizeof digit);
    return out + sizeof digit;
  }

  std::vector<std::int64_t> rows_;
  std::vector<Field> fields_ = {{"x", DType::float32, {1, 8, 8}}, {"y", DType::int64, {}}};
};

std::unique_ptr<Source> open_builtin(const Options& options) {
  const auto& name = options.get<std::string>("name");
  if (name != "digits") throw UserError("unknown builtin data set '" + name + "'; valid: digits");
  return open_digits(options.get<std::string>("split") == "train");
}

}  // namespace

std::unique_ptr<Source> open_digits(bool train) { return std::make_unique<Digits>(train); }

DataFormat builtin_format() {
  return {.name = "builtin",
          .keys = {{.name = "name",
                    .type = OptionType::text,
                    .meaning = "Name of the data set, e.g. `digits`."},
                   {.name = "split",
                    .type = OptionType::text,
                    .meaning = "Which part of the data set.",
                    .names = {"train", "test"},
                    .scope = OptionScope::place}},
          .open = open_builtin};
}

}  // namespace decent
