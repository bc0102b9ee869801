#pragma once
// Changes of colour, each computed as in torchvision.transforms.v2.functional for float32 images of
// 1 or 3 channels with values from 0 to 1. Results are in this range, too.

#include <algorithm>
#include <cstddef>

#include "decent/data/source.h"

namespace decent {

/// An image: `channels` planes (1 or 3) of `pixels` values.
struct Planes {
  float* values = nullptr;
  std::size_t channels = 0, pixels = 0;

  float* plane(std::size_t channel) const { return values + channel * pixels; }
};

/// `image` is float32 [channels, height, width].
Planes planes_of(HostArray& image);

inline float in_range(float value) { return std::min(std::max(value, 0.0F), 1.0F); }

void adjust_brightness(const Planes& image, float factor);
/// By each pixel's distance from the mean gray of the image.
void adjust_contrast(const Planes& image, float factor);
/// By each pixel's distance from its own gray. An image of one channel does not change, because it
/// has no saturation.
void adjust_saturation(const Planes& image, float factor);
/// `shift` is in turns of the colour wheel, -0.5 to 0.5.
void adjust_hue(const Planes& image, float shift);

}  // namespace decent
