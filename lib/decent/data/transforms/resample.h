#pragma once
// Resizes images: bilinear with antialiasing, as torch.nn.functional.interpolate(mode="bilinear",
// antialias=True), which torchvision's resize calls. It takes one pass over the image. Rows are
// mixed first, because that leaves less data after loops over contiguous memory. Masks take the
// nearest pixels.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decent/data/transforms/image_pass.h"

namespace decent {

/// A part of an image that is stored as planes, or as pixels one after another.
template <class T>
struct ImageView {
  const T* data = nullptr;          // the first pixel of the part
  ImageSize size;                   // of the part
  std::int64_t row_stride = 0;      // elements between rows
  std::int64_t channel_stride = 0;  // elements between planes; 1 for pixels
  std::int64_t channels = 1;
};

/// Resizes planes of float32 and writes the planes one after another.
void resample(const ImageView<float>& in, ImageSize size, float* out);

/// The same from pixels of bytes; each value is divided by 255.
void resample(const ImageView<std::uint8_t>& in, ImageSize size, float* out);

/// The place of the input for each of `out` outputs along one side of `in` inputs, as
/// torch.nn.functional.interpolate(mode="nearest").
std::vector<std::int64_t> nearest_places(std::int64_t in, std::int64_t out);

/// Resizes one plane whose values are classes, and writes them as another type.
template <class In, class Out>
void resample_nearest(const ImageView<In>& in, ImageSize size, Out* out) {
  const std::vector<std::int64_t> rows = nearest_places(in.size.height, size.height);
  const std::vector<std::int64_t> columns = nearest_places(in.size.width, size.width);
  for (const std::int64_t row : rows) {
    const In* from = in.data + row * in.row_stride;
    for (const std::int64_t column : columns) *out++ = static_cast<Out>(from[column]);
  }
}

}  // namespace decent
