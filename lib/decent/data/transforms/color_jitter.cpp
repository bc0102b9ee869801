#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "decent/core/error.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

// ---- changes of colour, each computed as in torchvision.transforms.v2.functional for float32
// images
// ----

// An image: `channels` planes (1 or 3) of `pixels` values from 0 to 1.
struct Planes {
  float* values = nullptr;
  std::size_t channels = 0, pixels = 0;

  float* plane(std::size_t channel) const { return values + channel * pixels; }
};

float in_range(float value) { return std::min(std::max(value, 0.0F), 1.0F); }

float gray(float red, float green, float blue) {
  return red * 0.2989F + green * 0.587F + blue * 0.114F;
}

float mean_gray(const Planes& image) {
  double sum = 0;
  for (std::size_t i = 0; i < image.pixels; ++i) {
    sum += image.channels == 1 ? image.values[i]
                               : gray(image.plane(0)[i], image.plane(1)[i], image.plane(2)[i]);
  }
  return static_cast<float>(sum / static_cast<double>(image.pixels));
}

struct Hsv {
  float hue, saturation, value;
};

Hsv to_hsv(float red, float green, float blue) {
  const float most = std::max({red, green, blue});
  const float least = std::min({red, green, blue});
  if (most == least) return {0, 0, most};
  const float range = most - least;
  const float r = (most - red) / range;
  const float g = (most - green) / range;
  const float b = (most - blue) / range;
  const float sixths = most == red ? b - g : most == green ? r + 2 - b : g + 4 - r;
  return {std::fmod(sixths * (1.0F / 6) + 1, 1.0F), range / most, most};
}

struct Rgb {
  float red, green, blue;
};

Rgb to_rgb(const Hsv& color) {
  const float sixths = color.hue * 6;
  const float whole = std::floor(sixths);
  const float part = color.saturation * (sixths - whole);
  const float v = color.value;
  const float p = in_range((1 - color.saturation) * v);
  const float q = in_range((1 - part) * v);
  const float t = in_range((part + (1 - color.saturation)) * v);
  switch (static_cast<std::int32_t>(whole) % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

void adjust_brightness(const Planes& image, float factor) {
  const std::size_t count = image.channels * image.pixels;
  for (std::size_t i = 0; i < count; ++i) image.values[i] = in_range(image.values[i] * factor);
}

void adjust_contrast(const Planes& image, float factor) {
  const float mean = mean_gray(image) * (1 - factor);
  const std::size_t count = image.channels * image.pixels;
  for (std::size_t i = 0; i < count; ++i)
    image.values[i] = in_range(image.values[i] * factor + mean);
}

// An image of one channel does not change, because it has no saturation.
void adjust_saturation(const Planes& image, float factor) {
  if (image.channels == 1) return;
  for (std::size_t i = 0; i < image.pixels; ++i) {
    const float own = gray(image.plane(0)[i], image.plane(1)[i], image.plane(2)[i]) * (1 - factor);
    for (std::size_t c = 0; c < image.channels; ++c) {
      float& value = image.plane(c)[i];
      value = in_range(value * factor + own);
    }
  }
}

// `shift` is in turns of the colour wheel, -0.5 to 0.5.
void adjust_hue(const Planes& image, float shift) {
  if (image.channels == 1 || shift == 0) return;
  float* red = image.plane(0);
  float* green = image.plane(1);
  float* blue = image.plane(2);
  for (std::size_t i = 0; i < image.pixels; ++i) {
    Hsv color = to_hsv(red[i], green[i], blue[i]);
    color.hue += shift;
    color.hue -= std::floor(color.hue);
    const Rgb turned = to_rgb(color);
    red[i] = turned.red;
    green[i] = turned.green;
    blue[i] = turned.blue;
  }
}

struct Factor {
  double low = 1, high = 1;
};

// A number x means [around - x, around + x], cut at the lower limit; [low, high] is taken as it is.
Factor factor_of(const Options& options, const std::string& key, double around, Factor limits) {
  const auto& values = options.get<std::vector<double>>(key);
  const bool pair = values.size() == 2;
  const std::string who = "transform color_jitter: " + key + ": ";
  if (!pair && values.size() != 1) throw UserError(who + "expected a number or [low, high]");
  if (!pair && values[0] < 0) throw UserError(who + "expected a number that is not negative");
  const Factor factor =
      pair ? Factor{values[0], values[1]} : Factor{around - values[0], around + values[0]};
  const double low = pair ? factor.low : std::max(factor.low, limits.low);
  if (low < limits.low || factor.high > limits.high || low > factor.high) {
    throw UserError(who + "expected values " +
                    (limits.low < 0 ? "from -0.5 to 0.5" : "that are not negative") +
                    ", the lower one first");
  }
  return {low, factor.high};
}

enum Change { brightness, contrast, saturation, hue, kChanges };

class ColorJitter final : public FieldTransform {
 public:
  ColorJitter(std::string field, const std::array<Factor, kChanges>& factors)
      : FieldTransform("color_jitter", std::move(field)), factors_(factors) {}

  bool random() const override { return true; }

 private:
  Field changed(Field field) const override {
    expect_image(field);
    if (field.shape[0] != 1 && field.shape[0] != 3) {
      wrong("field '" + field.name + "' has " + std::to_string(field.shape[0]) +
            " channels; expected 1 or 3");
    }
    return field;
  }

  // In random order, as torchvision.
  void change(HostArray& array, SampleRandom& random) const override {
    const ImageShape shape(array.shape);
    const Planes image{array.as<float>().data(), static_cast<std::size_t>(shape.channels),
                       static_cast<std::size_t>(shape.height * shape.width)};
    std::array<int, kChanges> order = {brightness, contrast, saturation, hue};
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i],
                order[static_cast<std::size_t>(random.integer(static_cast<std::int64_t>(i) + 1))]);
    std::array<float, kChanges> drawn;
    for (std::size_t i = 0; i < drawn.size(); ++i)
      drawn[i] = static_cast<float>(random.uniform(factors_[i].low, factors_[i].high));
    for (const int which : order) apply_one(image, which, drawn[static_cast<std::size_t>(which)]);
  }

  void apply_one(const Planes& image, int which, float factor) const {
    if (which == hue) return adjust_hue(image, factor);
    if (factor == 1) return;
    if (which == brightness) adjust_brightness(image, factor);
    if (which == contrast) adjust_contrast(image, factor);
    if (which == saturation) adjust_saturation(image, factor);
  }

  std::array<Factor, kChanges> factors_;
};

std::unique_ptr<SampleTransform> make_color_jitter(const Options& options) {
  const Factor any{0, std::numeric_limits<float>::max()};
  return std::make_unique<ColorJitter>(
      options.get<std::string>("field"),
      std::array<Factor, kChanges>{
          factor_of(options, "brightness", 1, any), factor_of(options, "contrast", 1, any),
          factor_of(options, "saturation", 1, any), factor_of(options, "hue", 0, {-0.5, 0.5})});
}

OptionKey factor_key(const std::string& name, const std::string& meaning) {
  return {.name = name,
          .type = OptionType::numbers,
          .meaning = meaning,
          .fallback = std::vector<double>{0.0}};
}

}  // namespace

Transform color_jitter_transform() {
  return {
      .name = "color_jitter",
      .meaning = "Brightness, contrast, saturation and hue changed, in random order.",
      .keys = {factor_key("brightness",
                          "Random factor for the brightness. n: from 1 - n (at least 0) to 1 + n; "
                          "[low, high]: from low to high."),
               factor_key("contrast",
                          "Random factor, likewise, for each pixel's distance from the mean gray "
                          "of the image."),
               factor_key("saturation",
                          "Random factor, likewise, for each pixel's distance from its own gray."),
               factor_key("hue",
                          "Random shift of the hue, as a share of the colour wheel. n (at most "
                          "0.5): from -n to n; [low, high]: from low to high."),
               field_key()},
      .make = make_color_jitter};
}

}  // namespace decent
