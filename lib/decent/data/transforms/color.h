#pragma once
// Changes of colour, each computed as in torchvision.transforms.v2.functional for float32 images.
// An image is `channels` planes (1 or 3) of `pixels` values from 0 to 1.

#include <cstddef>

namespace decent {

struct Planes {
  float* values = nullptr;
  std::size_t channels = 0, pixels = 0;

  float* plane(std::size_t channel) const { return values + channel * pixels; }
};

void adjust_brightness(const Planes& image, float factor);
void adjust_contrast(const Planes& image, float factor);
/// An image of one channel does not change, because it has no saturation.
void adjust_saturation(const Planes& image, float factor);
/// `shift` is in turns of the colour wheel, -0.5 to 0.5.
void adjust_hue(const Planes& image, float shift);

}  // namespace decent
