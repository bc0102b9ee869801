#pragma once
// Image files and their classes as a data source: x float32 [channels, height, width] from 0 to 1,
// y int64.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "decent/data/images/listing.h"
#include "decent/data/source.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {

struct ImagesOptions {
  std::filesystem::path path;     // a folder of folders, or a list that ends in .csv
  int channels = 3;               // 1 or 3
  std::optional<ImageSize> size;  // all images are resized to it; none: each keeps its own
  bool labels = true;             // false: takes any folder or list of images, and has no y
  ClassNumbers numbers = {};
};

/// Throws UserError if there are no images, and for a list with mistakes. Mistakes in an image are
/// found when it is read.
std::unique_ptr<Source> open_images_source(const ImagesOptions& options);

}  // namespace decent
