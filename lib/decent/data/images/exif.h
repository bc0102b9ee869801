#pragma once
// The orientation in EXIF data: how a camera was held.

#include <cstddef>
#include <span>

#include "decent/data/images/decode.h"

namespace decent {

/// Of a TIFF structure, with or without "Exif\0\0" in front. 1 where it says nothing that is valid.
int exif_orientation(std::span<const std::byte> exif);

/// Turns and mirrors the image as `orientation` (1 to 8) says. `spare` is memory to use.
void apply_orientation(Pixels& image, int orientation, std::vector<std::uint8_t>& spare);

}  // namespace decent
