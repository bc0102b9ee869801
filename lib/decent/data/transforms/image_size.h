#pragma once
// The sizes and paddings that transforms take, written as in torchvision.

#include <cstdint>
#include <string>
#include <vector>

#include "decent/core/options.h"

namespace decent {

struct ImageSize {
  std::int64_t height = 0, width = 0;

  bool operator==(const ImageSize&) const = default;
};

/// The key `size`: n or [height, width].
OptionKey size_key(std::string meaning);

/// One value n means n by n. Throws UserError naming `who` unless there are one or two values.
ImageSize image_size(const std::vector<std::int64_t>& size, const std::string& who);

/// The size after resizing the shorter side to `shorter`. The longer one keeps its proportion,
/// rounded down.
ImageSize with_shorter_side(ImageSize size, std::int64_t shorter);

}  // namespace decent
