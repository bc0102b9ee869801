#pragma once
// Sizes of images, and operations on an image of float32 [channels, height, width], that several
// transforms share. A mask, in their eyes, is an image of one channel whose values are classes.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "decent/core/options.h"
#include "decent/data/source.h"
#include "decent/data/transforms/sample_random.h"

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

/// Two sides of random length, in whole numbers of pixels, which may be none or more than `whole`
/// has: their product is a share of the area in `share`, the ratio of the first to the second one
/// is in `ratio`.
std::array<double, 2> draw_sides(ImageSize whole, Bounds share, Bounds ratio, SampleRandom& random);

/// A part of that size, anywhere in the image.
ImagePart anywhere_in(ImageSize whole, ImageSize part, SampleRandom& random);

/// Calls work(the number of the row's first element) for every row of the part, which lies inside
/// the image, in every channel.
template <typename Work>
void for_each_row(std::int64_t channels, ImageSize whole, const ImagePart& part, const Work& work) {
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t y = part.top; y < part.top + part.size.height; ++y)
      work((c * whole.height + y) * whole.width + part.left);
  }
}

/// What the values of pixels are. Colours may be mixed, of classes the nearest is taken.
enum class PixelKind { colors, classes };

/// The value of pixels beyond the image: kNoClass for classes.
inline float fill_of(PixelKind kind, float of_colors) {
  return kind == PixelKind::classes ? static_cast<float>(kNoClass) : of_colors;
}

/// Replaces the image by that part, resized to `size`. A whole image that already has the size is
/// left as it is.
void resize_part(HostArray& image, const ImagePart& part, ImageSize size, PixelKind kind);

/// Replaces the image by that part; `fill` is the value beyond the image.
void cut(HostArray& image, const ImagePart& part, float fill);

}  // namespace decent
