// TrivialAugment (Müller and Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data
// Augmentation", arXiv 2103.10158), as torchvision.transforms.v2.TrivialAugmentWide has it for
// float32 images.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/colors.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

// ---- geometry ----

// From places in the new image to places in the old one, both in pixels from the middle of the
// image: x' = xx x + xy y + x0, and y' likewise.
struct PlaceMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// What stands at a place between pixels, and outside the image.
struct PixelReading {
  bool bilinear = false;  // else the value of the nearest pixel
  float fill = 0;
};

// The pixels around a place in the old image, with their weights; none outside the image.
struct Neighbours {
  std::size_t count = 0;
  std::array<std::size_t, 4> at{};
  std::array<float, 4> weights{};

  void add(const ImageShape& shape, double column, double row, double weight) {
    if (column < 0 || row < 0 || column >= static_cast<double>(shape.width) ||
        row >= static_cast<double>(shape.height))
      return;
    at[count] = static_cast<std::size_t>(row) * static_cast<std::size_t>(shape.width) +
                static_cast<std::size_t>(column);
    weights[count++] = static_cast<float>(weight);
  }
};

Neighbours neighbours_of(const ImageShape& shape, double column, double row, bool bilinear) {
  Neighbours found;
  if (!bilinear) {
    found.add(shape, std::nearbyint(column), std::nearbyint(row), 1);
    return found;
  }
  const double left = std::floor(column);
  const double top = std::floor(row);
  const double to_right = column - left;
  const double down = row - top;
  found.add(shape, left, top, (1 - to_right) * (1 - down));
  found.add(shape, left + 1, top, to_right * (1 - down));
  found.add(shape, left, top + 1, (1 - to_right) * down);
  found.add(shape, left + 1, top + 1, to_right * down);
  return found;
}

// At the border, the share that lies inside the image counts twice, as in torchvision.
float value_of(const float* plane, const Neighbours& from, float fill) {
  float value = 0;
  float inside = 0;
  for (std::size_t i = 0; i < from.count; ++i) {
    value += from.weights[i] * plane[from.at[i]];
    inside += from.weights[i];
  }
  return inside == 1 ? value : (value - fill) * inside + fill;
}

void move_pixels(HostArray& image, const PlaceMap& map, const PixelReading& reading) {
  const ImageShape shape(image.shape);
  const double middle_x = static_cast<double>(shape.width - 1) / 2;
  const double middle_y = static_cast<double>(shape.height - 1) / 2;
  const std::int64_t pixels = shape.height * shape.width;
  thread_local std::vector<float> before;
  const std::span<float> values = image.as<float>();
  before.assign(values.begin(), values.end());
  for (std::int64_t at = 0; at < pixels; ++at) {
    const std::int64_t line = at / shape.width;
    const double x = static_cast<double>(at % shape.width) - middle_x;
    const double y = static_cast<double>(line) - middle_y;
    const double column = map.xx * x + map.xy * y + map.x0 + middle_x;
    const double row = map.yx * x + map.yy * y + map.y0 + middle_y;
    const Neighbours from = neighbours_of(shape, column, row, reading.bilinear);
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const auto plane = static_cast<std::size_t>(c * pixels);
      values[plane + static_cast<std::size_t>(at)] =
          value_of(before.data() + plane, from, reading.fill);
    }
  }
}

// The upper left corner stays where it is.
void shear_x(HostArray& image, double shear, const PixelReading& reading) {
  move_pixels(image, {.xy = shear, .x0 = shear * static_cast<double>(image.shape[1]) / 2}, reading);
}

void shear_y(HostArray& image, double shear, const PixelReading& reading) {
  move_pixels(image, {.yx = shear, .y0 = shear * static_cast<double>(image.shape[2]) / 2}, reading);
}

void translate_x(HostArray& image, double pixels, const PixelReading& reading) {
  move_pixels(image, {.x0 = -std::trunc(pixels)}, reading);
}

void translate_y(HostArray& image, double pixels, const PixelReading& reading) {
  move_pixels(image, {.y0 = -std::trunc(pixels)}, reading);
}

// Counterclockwise, around the middle.
void rotate(HostArray& image, double degrees, const PixelReading& reading) {
  const double angle = degrees * std::numbers::pi / 180;
  const double cosine = std::cos(angle);
  const double sine = std::sin(angle);
  move_pixels(image, {.xx = cosine, .xy = -sine, .yx = sine, .yy = cosine}, reading);
}

// ---- colours ----

void brighten(HostArray& image, double change, const PixelReading&) {
  adjust_brightness(planes_of(image), static_cast<float>(1 + change));
}

void saturate(HostArray& image, double change, const PixelReading&) {
  adjust_saturation(planes_of(image), static_cast<float>(1 + change));
}

void contrast_by(HostArray& image, double change, const PixelReading&) {
  adjust_contrast(planes_of(image), static_cast<float>(1 + change));
}

// Pixels move away from the mean of their neighbourhood, in which they count fivefold. Those at the
// border stay.
void sharpen(HostArray& image, double change, const PixelReading&) {
  const ImageShape shape(image.shape);
  if (shape.height <= 2 || shape.width <= 2) return;
  constexpr float kShare = 1.0F / 13;
  constexpr float kOwnShare = 5.0F / 13;
  const auto toward_mean = static_cast<float>(-change);
  const std::int64_t width = shape.width;
  thread_local std::vector<float> before;
  const std::span<float> values = image.as<float>();
  before.assign(values.begin(), values.end());
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    for (std::int64_t y = 1; y < shape.height - 1; ++y) {
      for (std::int64_t x = 1; x < width - 1; ++x) {
        const std::int64_t at = (c * shape.height + y) * width + x;
        const float* own = before.data() + at;
        const float others = own[-width - 1] + own[-width] + own[-width + 1] + own[-1] + own[1] +
                             own[width - 1] + own[width] + own[width + 1];
        const float mean = others * kShare + *own * kOwnShare;
        values[static_cast<std::size_t>(at)] = *own + (mean - *own) * toward_mean;
      }
    }
  }
  for (float& value : values) value = in_range(value);
}

// Only so many bits of each value are kept.
void posterize(HostArray& image, double bits, const PixelReading&) {
  const float levels = std::ldexp(1.0F, static_cast<int>(bits));
  for (float& value : image.as<float>())
    value = std::clamp(std::floor(value * levels), 0.0F, levels - 1) / levels;
}

void solarize(HostArray& image, double threshold, const PixelReading&) {
  for (float& value : image.as<float>())
    if (value >= static_cast<float>(threshold)) value = 1 - value;
}

std::span<float> plane_of(HostArray& image, std::size_t channel) {
  const Planes planes = planes_of(image);
  return {planes.plane(channel), planes.pixels};
}

// The values of each channel are stretched to the whole range.
void auto_contrast(HostArray& image, double, const PixelReading&) {
  for (std::size_t c = 0; c < planes_of(image).channels; ++c) {
    const std::span<float> plane = plane_of(image, c);
    const auto [least, most] = std::minmax_element(plane.begin(), plane.end());
    const bool one_value = *least == *most;
    const float begin = one_value ? 0 : *least;
    const float range = one_value ? 1 : *most - *least;
    for (float& value : plane) value = in_range((value - begin) / range);
  }
}

constexpr std::size_t kBytes = 256;

std::size_t to_byte(float value) {
  constexpr float kAlmost256 = 255.999F;
  return value > 0 ? static_cast<std::size_t>(in_range(value) * kAlmost256) : 0;
}

// A byte for each byte, so that the new ones are spread evenly; computed as in Pillow.
std::array<std::size_t, kBytes> equalizing_table(const std::array<std::size_t, kBytes>& counts,
                                                 std::size_t pixels) {
  std::array<std::size_t, kBytes> table{};
  std::size_t last = kBytes - 1;
  while (counts[last] == 0) --last;
  const std::size_t step = (pixels - counts[last]) / (kBytes - 1);
  std::size_t passed = step / 2;
  for (std::size_t byte = 0; byte < kBytes; ++byte) {
    table[byte] = step == 0 ? byte : std::min(passed / step, kBytes - 1);
    passed += counts[byte];
  }
  return table;
}

void equalize(HostArray& image, double, const PixelReading&) {
  constexpr float kOfByte = 1.0F / 255;
  for (std::size_t c = 0; c < planes_of(image).channels; ++c) {
    const std::span<float> plane = plane_of(image, c);
    std::array<std::size_t, kBytes> counts{};
    for (const float value : plane) ++counts[to_byte(value)];
    const auto table = equalizing_table(counts, plane.size());
    for (float& value : plane) value = static_cast<float>(table[to_byte(value)]) * kOfByte;
  }
}

void keep_image(HostArray&, double, const PixelReading&) {}

// ---- the choice ----

// A change and its magnitudes, which are spread evenly from the weakest to the strongest.
struct Augmentation {
  void (*apply)(HostArray& image, double magnitude, const PixelReading& reading);
  double weakest = 0, strongest = 0;
  bool is_signed = false;  // it goes both ways
  bool is_whole = false;   // magnitudes are rounded
};

// In torchvision's order.
constexpr std::array kAugmentations = {
    Augmentation{keep_image},
    Augmentation{shear_x, 0, 0.99, true},
    Augmentation{shear_y, 0, 0.99, true},
    Augmentation{translate_x, 0, 32, true},
    Augmentation{translate_y, 0, 32, true},
    Augmentation{rotate, 0, 135, true},
    Augmentation{brighten, 0, 0.99, true},
    Augmentation{saturate, 0, 0.99, true},
    Augmentation{contrast_by, 0, 0.99, true},
    Augmentation{sharpen, 0, 0.99, true},
    Augmentation{posterize, 8, 2, false, true},
    Augmentation{solarize, 1, 0},
    Augmentation{auto_contrast},
    Augmentation{equalize},
};

class TrivialAugment final : public FieldTransform {
 public:
  explicit TrivialAugment(const Options& options)
      : FieldTransform("trivial_augment", options.get<std::string>("field")),
        bins_(options.get<std::int64_t>("num_magnitude_bins")),
        reading_{.bilinear = options.get<std::string>("interpolation") == "bilinear",
                 .fill = static_cast<float>(options.get<double>("fill"))} {}

  bool random() const override { return true; }

 private:
  Field changed(Field field) const override {
    expect_colors(field);
    return field;
  }

  void change(HostArray& array, SampleRandom& random) const override {
    if (array.bytes.empty()) return;
    const Augmentation& chosen =
        kAugmentations[static_cast<std::size_t>(random.integer(std::ssize(kAugmentations)))];
    chosen.apply(array, draw_magnitude(chosen, random), reading_);
  }

  double draw_magnitude(const Augmentation& of, SampleRandom& random) const {
    const auto bin = static_cast<double>(random.integer(bins_));
    const double magnitude =
        of.weakest + (of.strongest - of.weakest) * bin / static_cast<double>(bins_ - 1);
    if (of.is_whole) return std::nearbyint(magnitude);
    return of.is_signed && random.chance(0.5) ? -magnitude : magnitude;
  }

  std::int64_t bins_;
  PixelReading reading_;
};

}  // namespace

Transform trivial_augment_transform() {
  return {
      .name = "trivial_augment",
      .meaning =
          "One of 14 changes, drawn for each image, with a magnitude that is drawn, too: "
          "nothing, shear, translation and rotation, brightness, saturation, contrast, "
          "sharpness, posterize, solarize, autocontrast, equalize.",
      .keys = {{.name = "num_magnitude_bins",
                .type = OptionType::integer,
                .meaning = "Number of magnitudes.",
                .fallback = std::int64_t{31},
                .range = within(2, 1'000'000)},
               {.name = "interpolation",
                .type = OptionType::text,
                .meaning = "Values between pixels in shear, translation and rotation: `nearest` "
                           "takes the nearest pixel, `bilinear` the mean of four by distance.",
                .fallback = std::string("nearest"),
                .names = {"nearest", "bilinear"}},
               {.name = "fill",
                .type = OptionType::number,
                .meaning = "The value where shear, translation and rotation leave none.",
                .fallback = 0.0},
               field_key()},
      .make = [](const Options& options) -> std::unique_ptr<SampleTransform> {
        return std::make_unique<TrivialAugment>(options);
      }};
}

}  // namespace decent
