#pragma once
// The orientation in EXIF data: how a camera was held.

#include <cstddef>
#include <span>

#include "decent/data/images/decode.h"

namespace decent {

/// Nothing says how an image must be turned.
inline constexpr int kNotSaid = 0;

/// The orientation in a TIFF structure, with or without "Exif\0\0" in front: 1 to 8; 1 if its value
/// is not valid.
int exif_orientation(std::span<const std::byte> exif);

/// The orientation in an image file with XMP, which has it as text (`tiff:Orientation`).
int xmp_orientation(std::span<const std::byte> file);

/// Turns and mirrors the image as `orientation` (1 to 8) says. `spare` is memory to use.
void apply_orientation(Pixels& image, int orientation, std::vector<std::uint8_t>& spare);

}  // namespace decent
