#pragma once
// Sizes of images, and operations on an image of float32 [channels, height, width], that several
// transforms share.

#include <cstdint>
#include <string>
#include <vector>

#include "decent/core/options.h"
#include "decent/data/source.h"

namespace decent {

struct ImageSize {
  std::int64_t height = 0, width = 0;

  bool operator==(const ImageSize&) const = default;
};

/// The key `size`, written as in torchvision: n or [height, width].
OptionKey size_key(std::string meaning);

/// One value n means n by n. Throws UserError naming `who` unless there are one or two values.
ImageSize image_size(const std::vector<std::int64_t>& size, const std::string& who);

struct Bounds {
  double low = 0, high = 0;
};

/// The key's two numbers. Throws UserError naming `who` unless there are two, the lower one first.
Bounds bounds_of(const Options& options, const std::string& key, const std::string& who);

/// The size after resizing the shorter side to `shorter`. The longer one keeps its proportion,
/// rounded down.
ImageSize with_shorter_side(ImageSize size, std::int64_t shorter);

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
