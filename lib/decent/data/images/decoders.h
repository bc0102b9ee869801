#pragma once
// One decoder for each kind of image file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "decent/data/images/decode.h"

namespace decent {

struct ImageFile {
  std::span<const std::byte> bytes;
  std::string name;          // for messages
  std::int64_t most_pixels;  // more are refused

  [[noreturn]] void wrong(const std::string& problem) const;
  /// Sets the size of `out` and allocates its memory. Throws UserError for too many pixels.
  void begin(Pixels& out, std::int64_t height, std::int64_t width, std::int64_t channels) const;
};

/// A decoder gives RGB if the file has colours, gray if it has none, and how the image must be
/// turned according to its EXIF data (exif.h).
void decode_jpeg(const ImageFile& file, Pixels& out, int& orientation);
void decode_png(const ImageFile& file, Pixels& out, int& orientation);
/// The stored values of one channel, see decode_mask().
void decode_png_mask(const ImageFile& file, Pixels& out, int& orientation);
void decode_webp(const ImageFile& file, Pixels& out, int& orientation);

}  // namespace decent
