#pragma once
// Operations on an image of float32 [channels, height, width] that several transforms share.

#include <cstdint>
#include <vector>

#include "decent/data/source.h"
#include "decent/data/transforms/image_size.h"

namespace decent {

/// A part of an image, given by its upper left corner and size. For cut() it may reach beyond the
/// image.
struct ImagePart {
  std::int64_t top = 0, left = 0;
  ImageSize size;
};

/// The size of an image of shape [channels, height, width].
inline ImageSize size_of_image(const std::vector<std::int64_t>& shape) {
  return {shape.at(1), shape.at(2)};
}

/// Replaces the image by that part, resized to `size`. A whole image that already has the size is
/// left as it is.
void resize_part(HostArray& image, const ImagePart& part, ImageSize size);

/// Replaces the image by that part; `fill` is the value beyond the image.
void cut(HostArray& image, const ImagePart& part, float fill);

}  // namespace decent
