#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {
namespace {

// The largest part in the middle of the image with the proportions of `size`, resized.
class MiddleResized final : public GeometricTransform {
 public:
  MiddleResized(std::string field, ImageSize size)
      : GeometricTransform("random_resized_crop", std::move(field)), size_(size) {}

 private:
  Field changed(Field field) const override {
    expect_image(field);
    field.shape = {field.shape[0], size_.height, size_.width};
    return field;
  }
  void move(HostArray& array, PixelKind kind, SampleRandom&) const override {
    const ImageSize whole = size_of_image(array.shape);
    const double scale =
        std::min(static_cast<double>(whole.height) / static_cast<double>(size_.height),
                 static_cast<double>(whole.width) / static_cast<double>(size_.width));
    const ImageSize part{extent(size_.height, scale, whole.height),
                         extent(size_.width, scale, whole.width)};
    resize_part(array, {(whole.height - part.height) / 2, (whole.width - part.width) / 2, part},
                size_, kind);
  }
  static std::int64_t extent(std::int64_t size, double scale, std::int64_t most) {
    return std::clamp<std::int64_t>(std::llrint(static_cast<double>(size) * scale), 1, most);
  }

  ImageSize size_;
};

class RandomResizedCrop final : public GeometricTransform {
 public:
  RandomResizedCrop(std::string field, ImageSize size, Bounds scale, Bounds ratio)
      : GeometricTransform("random_resized_crop", std::move(field)),
        size_(size),
        scale_(scale),
        ratio_(ratio) {}

  bool random() const override { return true; }
  std::unique_ptr<SampleTransform> in_evaluation() const override {
    return std::make_unique<MiddleResized>(field(), size_);
  }

 private:
  Field changed(Field field) const override {
    expect_image(field);
    field.shape = {field.shape[0], size_.height, size_.width};
    return field;
  }

  void move(HostArray& array, PixelKind kind, SampleRandom& random) const override {
    resize_part(array, part_of(size_of_image(array.shape), random), size_, kind);
  }

  // As torchvision draws it: ten attempts, then the middle.
  ImagePart part_of(ImageSize whole, SampleRandom& random) const {
    constexpr int kAttempts = 10;
    const auto height = static_cast<double>(whole.height);
    const auto width = static_cast<double>(whole.width);
    for (int i = 0; i < kAttempts; ++i) {
      const auto [w, h] = draw_sides(whole, scale_, ratio_, random);
      if (h < 1 || w < 1 || h > height || w > width) continue;
      return anywhere_in(whole, {static_cast<std::int64_t>(h), static_cast<std::int64_t>(w)},
                         random);
    }
    return middle_of(whole);
  }

  ImagePart middle_of(ImageSize whole) const {
    const auto height = static_cast<double>(whole.height);
    const auto width = static_cast<double>(whole.width);
    const double ratio = std::clamp(width / height, ratio_.low, ratio_.high);
    ImageSize part = whole;
    // An extreme ratio would leave a side of no pixels.
    if (ratio > width / height) {
      part.height = std::max<std::int64_t>(1, std::llrint(width / ratio));
    } else if (ratio < width / height) {
      part.width = std::max<std::int64_t>(1, std::llrint(height * ratio));
    }
    return {(whole.height - part.height) / 2, (whole.width - part.width) / 2, part};
  }

  ImageSize size_;
  Bounds scale_;
  Bounds ratio_;
};

std::unique_ptr<SampleTransform> make_random_resized_crop(const Options& options) {
  const std::string who = "transform random_resized_crop";
  return std::make_unique<RandomResizedCrop>(
      options.get<std::string>("field"),
      image_size(options.get<std::vector<std::int64_t>>("size"), who),
      bounds_of(options, "scale", who), bounds_of(options, "ratio", who));
}

}  // namespace

Transform random_resized_crop_transform() {
  return {.name = "random_resized_crop",
          .meaning = "A part of random area and proportion, resized.",
          .keys = {size_key("n or [height, width]."),
                   {.name = "scale",
                    .type = OptionType::numbers,
                    .meaning = "Share of the image's area that the crop keeps, [least, most].",
                    .fallback = std::vector<double>{0.08, 1.0},
                    .range = within(1e-6, 1)},
                   {.name = "ratio",
                    .type = OptionType::numbers,
                    .meaning = "Ratio of the crop's width to its height, [least, most].",
                    .fallback = std::vector<double>{3.0 / 4, 4.0 / 3},
                    .range = within(1e-3, 1e3)},
                   field_key()},
          .make = make_random_resized_crop};
}

}  // namespace decent
