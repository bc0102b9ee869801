#pragma once
// Images of another size: bilinear with antialiasing, as torch.nn.functional.interpolate(mode=
// "bilinear", antialias=True), which torchvision's resize calls. In one pass over the image: rows
// are mixed first, as that shrinks what is left with loops over contiguous memory.

#include <cstdint>

#include "decent/data/transforms/image_size.h"

namespace decent {

/// A part of an image of `channels` planes, or of pixels one after another.
template <class T>
struct ImageView {
  const T* data = nullptr;          // the first pixel of the part
  ImageSize size;                   // of the part
  std::int64_t row_stride = 0;      // elements between rows
  std::int64_t channel_stride = 0;  // elements between planes; of pixels: 1
  std::int64_t channels = 1;
};

/// Planes of float32 to planes one after another.
void resample(const ImageView<float>& in, ImageSize size, float* out);

/// Pixels of bytes to planes, each value divided by 255.
void resample(const ImageView<std::uint8_t>& in, ImageSize size, float* out);

}  // namespace decent
