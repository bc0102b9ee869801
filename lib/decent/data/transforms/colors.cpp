#include "decent/data/transforms/colors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace decent {
namespace {

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

}  // namespace

Planes planes_of(HostArray& image) {
  return {image.as<float>().data(), static_cast<std::size_t>(image.shape.at(0)),
          static_cast<std::size_t>(image.shape.at(1) * image.shape.at(2))};
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

}  // namespace decent
