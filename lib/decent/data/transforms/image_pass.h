#pragma once
// What several transforms do to an image of float32 [channels, height, width].

#include <cstdint>
#include <vector>

#include "decent/data/source.h"
#include "decent/data/transforms/image_size.h"

namespace decent {

/// A part of an image, from its upper left corner on. That of cut() may reach beyond the image.
struct ImagePart {
  std::int64_t top = 0, left = 0;
  ImageSize size;
};

/// Of the shape [channels, height, width].
inline ImageSize size_of_image(const std::vector<std::int64_t>& shape) {
  return {shape.at(1), shape.at(2)};
}

/// The image becomes that part of it, at that size. A whole image that has the size is left as it
/// is.
void resize_part(HostArray& image, const ImagePart& part, ImageSize size);

/// The image becomes that part of it; `fill` is what lies beyond the image.
void cut(HostArray& image, const ImagePart& part, float fill);

}  // namespace decent
