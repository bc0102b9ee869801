#include "decent/data/images/exif.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace decent {
namespace {

constexpr int kUpright = 1;

// Numbers of a TIFF structure, in its byte order; 0 beyond its end.
class Tiff {
 public:
  Tiff(std::span<const std::byte> bytes, bool big) : bytes_(bytes), big_(big) {}

  std::size_t number(std::size_t at, std::size_t width) const {
    if (at > bytes_.size() || width > bytes_.size() - at) return 0;
    std::size_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const auto byte = static_cast<std::size_t>(bytes_[at + i]);
      value |= byte << 8 * (big_ ? width - 1 - i : i);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_;
};

// Bytes of an integer of that type; 0 for types that Pillow does not take for integers.
std::size_t width_of(std::size_t type) {
  switch (type) {
    case 6:  // SBYTE
      return 1;
    case 3:  // SHORT
    case 8:  // SSHORT
      return 2;
    case 4:   // LONG
    case 9:   // SLONG
    case 13:  // IFD
      return 4;
    default:
      return 0;
  }
}

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  using namespace std::string_view_literals;
  while (begins_with(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool big = begins_with(exif, "MM\0*"sv);
  if (!big && !begins_with(exif, "II*\0"sv)) return kNotSaid;
  constexpr std::size_t kTag = 0x0112, kEntry = 12;
  const Tiff tiff(exif, big);
  const std::size_t folder = tiff.number(4, 4);
  const std::size_t entries = tiff.number(folder, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = folder + 2 + i * kEntry;
    if (tiff.number(entry, 2) != kTag) continue;
    const std::size_t value = tiff.number(entry + 8, width_of(tiff.number(entry + 2, 2)));
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kNotSaid;
}

int xmp_orientation(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (const std::string_view name : {"tiff:Orientation=\"", "tiff:Orientation>"}) {
    const std::size_t found = text.find(name);
    if (found == std::string_view::npos || found + name.size() >= text.size()) continue;
    const int value = text[found + name.size()] - '0';
    return value >= 1 && value <= 8 ? value : kUpright;
  }
  return kNotSaid;
}

void apply_orientation(Pixels& image, int orientation, std::vector<std::uint8_t>& spare) {
  if (orientation == kUpright || orientation == kNotSaid) return;
  // The place of the turned image's first pixel, and the distances to its neighbours to the right
  // and below, in pixels of the image as it is stored.
  const std::int64_t w = image.width, h = image.height;
  const bool turned = orientation >= 5;  // rows become columns
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const std::int64_t along_row = from_right ? -1 : 1;
  const std::int64_t along_column = from_below ? -w : w;
  const std::int64_t right = turned ? along_column : along_row;
  const std::int64_t below = turned ? along_row : along_column;
  std::int64_t first = (from_right ? w - 1 : 0) + (from_below ? (h - 1) * w : 0);
  if (turned) std::swap(image.height, image.width);

  spare.resize(image.bytes.size());
  std::uint8_t* out = spare.data();
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::int64_t y = 0; y < image.height; ++y, first += below) {
    for (std::int64_t x = 0, at = first; x < image.width; ++x, at += right) {
      const std::uint8_t* pixel = image.bytes.data() + at * image.channels;
      for (std::size_t c = 0; c < channels; ++c) *out++ = pixel[c];
    }
  }
  std::swap(image.bytes, spare);
}

}  // namespace decent
