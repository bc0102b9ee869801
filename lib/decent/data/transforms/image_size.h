#pragma once
// The sizes and paddings that transforms take, written as torchvision takes them.

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

/// n is n by n. Throws UserError naming `who` for other than one or two values.
ImageSize image_size(const std::vector<std::int64_t>& size, const std::string& who);

/// Where the shorter side becomes `shorter` and the longer one keeps its proportion, rounded down.
ImageSize with_shorter_side(ImageSize size, std::int64_t shorter);

}  // namespace decent
