// Random erasing (Zhong and others, "Random Erasing Data Augmentation", arXiv 1708.04896), as
// torchvision.transforms.v2.RandomErasing has it.

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {
namespace {

class RandomErasing final : public FieldTransform {
 public:
  RandomErasing(const Options& options, const std::string& who)
      : FieldTransform("random_erasing", options.get<std::string>("field")),
        probability_(options.get<double>("p")),
        scale_(bounds_of(options, "scale", who)),
        ratio_(bounds_of(options, "ratio", who)),
        value_(value_of(options.get<std::string>("value"))) {}

  bool random() const override { return true; }

 private:
  Field changed(Field field) const override {
    expect_image(field);
    return field;
  }

  OnMask on_mask() const override { return OnMask::stays; }

  void change(HostArray& array, SampleRandom& random) const override {
    if (!random.chance(probability_)) return;
    const std::optional<ImagePart> part = part_of(size_of_image(array.shape), random);
    if (!part) return;
    float* const values = array.as<float>().data();
    for_each_row(array.shape[0], size_of_image(array.shape), *part, [&](std::int64_t row) {
      for (std::int64_t x = 0; x < part->size.width; ++x)
        values[row + x] = value_ ? *value_ : static_cast<float>(random.normal());
    });
  }

  // Nothing after ten attempts whose part was not smaller than the image.
  std::optional<ImagePart> part_of(ImageSize whole, SampleRandom& random) const {
    constexpr int kAttempts = 10;
    const auto height = static_cast<double>(whole.height);
    const auto width = static_cast<double>(whole.width);
    for (int i = 0; i < kAttempts; ++i) {
      const auto [h, w] = draw_sides(whole, scale_, ratio_, random);
      if (h >= height || w >= width) continue;
      return anywhere_in(whole, {static_cast<std::int64_t>(h), static_cast<std::int64_t>(w)},
                         random);
    }
    return std::nullopt;
  }

  // None for noise.
  std::optional<float> value_of(const std::string& text) const {
    if (text == "random") return std::nullopt;
    float value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(value))
      wrong("value: expected a number or random, not '" + text + "'");
    return value;
  }

  double probability_;
  Bounds scale_;
  Bounds ratio_;
  std::optional<float> value_;
};

}  // namespace

Transform random_erasing_transform() {
  return {
      .name = "random_erasing",
      .meaning = "A part of random area and proportion, replaced by a number or by noise.",
      .keys = {{.name = "p",
                .type = OptionType::number,
                .meaning = "Fraction of images of which a part is erased.",
                .fallback = 0.5,
                .range = within(0, 1)},
               {.name = "scale",
                .type = OptionType::numbers,
                .meaning = "Share of the image's area that is erased, [least, most].",
                .fallback = std::vector<double>{0.02, 0.33},
                .range = within(0, 1)},
               {.name = "ratio",
                .type = OptionType::numbers,
                .meaning = "Ratio of the part's height to its width, [least, most].",
                .fallback = std::vector<double>{0.3, 3.3},
                .range = within(1e-3, 1e3)},
               {.name = "value",
                .type = OptionType::text,
                .meaning = "The new value, a number; `random`: a number of the normal distribution "
                           "(mean 0, deviation 1) for each value, which suits images behind "
                           "`normalize`.",
                .fallback = std::string("0")},
               field_key()},
      .make = [](const Options& options) -> std::unique_ptr<SampleTransform> {
        return std::make_unique<RandomErasing>(options, "transform random_erasing");
      }};
}

}  // namespace decent
