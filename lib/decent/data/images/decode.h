#pragma once
// Decodes images in memory (JPEG, PNG and WebP, told apart by their content) to pixels of one byte
// per channel.
//
// The pixels are the same as Pillow's after Image.open(file), ImageOps.exif_transpose and
// convert("RGB") or convert("L").

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace decent {

/// [height, width, channels], row-major.
struct Pixels {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> bytes;

  std::size_t count() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  }
};

/// Images with more pixels are refused before memory is allocated. Above this limit, Pillow takes a
/// file for a decompression bomb.
inline constexpr std::int64_t kMostPixels = 178'956'970;

/// Whether a file begins like one that decode_image reads.
bool is_image(std::span<const std::byte> file);

/// `channels` is 1 (gray) or 3 (red, green, blue); alpha is dropped. `out` keeps its memory from
/// call to call. Throws UserError naming `name` for other files, damaged files and images with too
/// many pixels. Any thread.
void decode_image(std::span<const std::byte> file, const std::string& name, int channels,
                  Pixels& out, std::int64_t most_pixels = kMostPixels);

/// The classes of an image's pixels from a PNG file of one channel of at most 8 bits: the stored
/// values, which are numbers of colours if the file has a palette. `out` has one channel and keeps
/// its memory from call to call. Throws UserError as decode_image does, and for other images. Any
/// thread.
void decode_mask(std::span<const std::byte> file, const std::string& name, Pixels& out,
                 std::int64_t most_pixels = kMostPixels);

}  // namespace decent
