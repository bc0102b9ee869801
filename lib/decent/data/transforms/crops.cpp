#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {
namespace {

Field with_size(Field field, ImageSize size) {
  field.shape = {field.shape[0], size.height, size.width};
  return field;
}

std::string size_text(ImageSize size) {
  return shape_text(std::vector<std::int64_t>{size.height, size.width});
}

// Where the middle `part` of `whole` begins; negative if `part` is larger. Halves are rounded to
// the even number, as Python's round() does in torchvision.
std::int64_t middle(std::int64_t whole, std::int64_t part) {
  if (part > whole) return -((part - whole) / 2);
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
}

class CenterCrop final : public GeometricTransform {
 public:
  CenterCrop(std::string field, ImageSize size)
      : GeometricTransform("center_crop", std::move(field)), size_(size) {}

 private:
  Field changed(Field field) const override {
    expect_image(field);
    return with_size(std::move(field), size_);
  }
  void move(HostArray& array, PixelKind kind, SampleRandom&) const override {
    const ImageSize whole = size_of_image(array.shape);
    if (whole == size_) return;
    cut(array, {middle(whole.height, size_.height), middle(whole.width, size_.width), size_},
        fill_of(kind, 0));
  }

  ImageSize size_;
};

struct Padding {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};

// In torchvision's order.
Padding padding_of(const std::vector<std::int64_t>& sides) {
  if (sides.size() == 1) return {sides[0], sides[0], sides[0], sides[0]};
  if (sides.size() == 2) return {sides[0], sides[1], sides[0], sides[1]};
  if (sides.size() == 4) return {sides[0], sides[1], sides[2], sides[3]};
  throw UserError(
      "transform random_crop: padding: expected n, [left and right, top and bottom] or [left, top, "
      "right, bottom], not " +
      counted(static_cast<std::int64_t>(sides.size()), "value"));
}

class RandomCrop final : public GeometricTransform {
 public:
  RandomCrop(std::string field, ImageSize size, Padding padding, float fill, bool pad_if_needed)
      : GeometricTransform("random_crop", std::move(field)),
        size_(size),
        padding_(padding),
        fill_(fill),
        pad_if_needed_(pad_if_needed) {}

  bool random() const override { return true; }
  std::unique_ptr<SampleTransform> in_evaluation() const override {
    return std::make_unique<CenterCrop>(field(), size_);
  }

 private:
  Field changed(Field field) const override {
    expect_image(field);
    const ImageSize whole = size_of_image(field.shape);
    if (whole.height != kAnyExtent)
      range(whole.height, padding_.top, padding_.bottom, size_.height, whole);
    if (whole.width != kAnyExtent)
      range(whole.width, padding_.left, padding_.right, size_.width, whole);
    return with_size(std::move(field), size_);
  }

  void move(HostArray& array, PixelKind kind, SampleRandom& random) const override {
    const ImageSize whole = size_of_image(array.shape);
    const Range rows = range(whole.height, padding_.top, padding_.bottom, size_.height, whole);
    const Range columns = range(whole.width, padding_.left, padding_.right, size_.width, whole);
    const std::int64_t top = rows.first + random.integer(rows.count);
    const std::int64_t left = columns.first + random.integer(columns.count);
    cut(array, {top, left, size_}, fill_of(kind, fill_));
  }

  struct Range {
    std::int64_t first, count;
  };
  // Where a crop may begin, along one side of the image.
  Range range(std::int64_t extent, std::int64_t before, std::int64_t after, std::int64_t crop,
              ImageSize whole) const {
    std::int64_t padded = extent + before + after;
    if (padded < crop && pad_if_needed_) {  // as in torchvision: the missing extent on each side
      const std::int64_t missing = crop - padded;
      before += missing;
      padded += 2 * missing;
    }
    if (padded < crop) {
      wrong("an image of " + size_text(whole) + " is too small for a crop of " + size_text(size_) +
            "; give padding, or pad_if_needed: true");
    }
    return {-before, padded - crop + 1};
  }

  ImageSize size_;
  Padding padding_;
  float fill_;
  bool pad_if_needed_;
};

std::unique_ptr<SampleTransform> make_center_crop(const Options& options) {
  return std::make_unique<CenterCrop>(
      options.get<std::string>("field"),
      image_size(options.get<std::vector<std::int64_t>>("size"), "transform center_crop"));
}

std::unique_ptr<SampleTransform> make_random_crop(const Options& options) {
  return std::make_unique<RandomCrop>(
      options.get<std::string>("field"),
      image_size(options.get<std::vector<std::int64_t>>("size"), "transform random_crop"),
      padding_of(options.get<std::vector<std::int64_t>>("padding")),
      static_cast<float>(options.get<double>("fill")), options.get<bool>("pad_if_needed"));
}

}  // namespace

Transform center_crop_transform() {
  return {.name = "center_crop",
          .meaning = "The middle of the image; zeros around an image that is smaller.",
          .keys = {size_key("n or [height, width]."), field_key()},
          .make = make_center_crop};
}

Transform random_crop_transform() {
  return {.name = "random_crop",
          .meaning = "A part of the image, anywhere in it.",
          .keys = {size_key("n or [height, width]."),
                   {.name = "padding",
                    .type = OptionType::integers,
                    .meaning = "Pixels to add around the image before it is cropped: n, [left and "
                               "right, top and bottom] or [left, top, right, bottom].",
                    .fallback = std::vector<std::int64_t>{0},
                    .range = within(0, 32768)},
                   {.name = "fill",
                    .type = OptionType::number,
                    .meaning = "The value of added pixels.",
                    .fallback = 0.0},
                   {.name = "pad_if_needed",
                    .type = OptionType::boolean,
                    .meaning = "Whether images that are too small get more padding.",
                    .fallback = false},
                   field_key()},
          .make = make_random_crop};
}

}  // namespace decent
