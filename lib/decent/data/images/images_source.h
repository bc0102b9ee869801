#pragma once
// Image files and their classes as a data source: x float32 [channels, height, width] from 0 to 1,
// y int64.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "decent/data/images/listing.h"
#include "decent/data/source.h"
#include "decent/data/transforms/image_size.h"

namespace decent {

struct ImagesOptions {
  std::filesystem::path path;     // a folder of folders, or a list that ends in .csv
  int channels = 3;               // 1 or 3
  std::optional<ImageSize> size;  // all images come to it; none: each has its own
  bool labels = true;             // false: any folder or list of images will do, without y
  ClassNumbers numbers = {};
};

/// Throws UserError for no images and for a list with mistakes; what is wrong in an image, reading
/// it says.
std::unique_ptr<Source> open_images_source(const ImagesOptions& options);

}  // namespace decent
