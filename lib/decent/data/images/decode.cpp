#include "decent/data/images/decode.h"

#include <cstring>
#include <string_view>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/images/decoders.h"
#include "decent/data/images/exif.h"

namespace decent {
namespace {

using Decoder = void (*)(const ImageFile&, Pixels&, int&);

bool has(std::span<const std::byte> file, std::size_t at, std::string_view text) {
  return file.size() >= at + text.size() &&
         std::memcmp(file.data() + at, text.data(), text.size()) == 0;
}

Decoder decoder_of(std::span<const std::byte> file) {
  if (has(file, 0, "\xFF\xD8\xFF")) return decode_jpeg;
  if (has(file, 0, "\x89PNG\r\n\x1A\n")) return decode_png;
  if (has(file, 0, "RIFF") && has(file, 8, "WEBP")) return decode_webp;
  return nullptr;
}

// As Pillow's convert("L"): ITU-R 601-2, with 16 fractional bits.
std::uint8_t gray(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>(
      (pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16);
}

// As the file's EXIF data says, or else its XMP.
void turn(Pixels& image, int orientation, std::span<const std::byte> file) {
  thread_local std::vector<std::uint8_t> spare;
  if (orientation == kNotSaid) orientation = xmp_orientation(file);
  apply_orientation(image, orientation, spare);
}

void make_gray(Pixels& image) {
  const std::size_t count = image.count();
  for (std::size_t i = 0; i < count; ++i) image.bytes[i] = gray(&image.bytes[3 * i]);
  image.bytes.resize(count);
  image.channels = 1;
}

void make_colored(Pixels& image) {
  const std::size_t count = image.count();
  image.bytes.resize(3 * count);
  for (std::size_t i = count; i-- > 0;) {
    const std::uint8_t value = image.bytes[i];
    for (std::size_t c = 0; c < 3; ++c) image.bytes[3 * i + c] = value;
  }
  image.channels = 3;
}

}  // namespace

void ImageFile::wrong(const std::string& problem) const {
  throw UserError("'" + name + "': " + problem);
}

void ImageFile::begin(Pixels& out, std::int64_t height, std::int64_t width,
                      std::int64_t channels) const {
  if (height < 1 || width < 1) wrong("an image without pixels");
  if (height > most_pixels / width) {
    wrong("an image of " + std::to_string(width) + " by " + std::to_string(height) +
          " pixels; the most that is read is " + counted(most_pixels, "pixel"));
  }
  out.height = height;
  out.width = width;
  out.channels = channels;
  out.bytes.resize(static_cast<std::size_t>(height * width * channels));
}

bool is_image(std::span<const std::byte> file) { return decoder_of(file) != nullptr; }

void decode_image(std::span<const std::byte> file, const std::string& name, int channels,
                  Pixels& out, std::int64_t most_pixels) {
  const ImageFile image{file, name, most_pixels};
  const Decoder decode = decoder_of(file);
  if (file.empty()) image.wrong("the file is empty; expected a JPEG, PNG or WebP image");
  if (decode == nullptr) image.wrong("not an image: expected JPEG, PNG or WebP");
  int orientation = kNotSaid;
  decode(image, out, orientation);
  if (channels == 1 && out.channels == 3) make_gray(out);
  turn(out, orientation, file);
  if (channels == 3 && out.channels == 1) make_colored(out);
}

void decode_mask(std::span<const std::byte> file, const std::string& name, Pixels& out,
                 std::int64_t most_pixels) {
  const ImageFile mask{file, name, most_pixels};
  if (decoder_of(file) != decode_png) mask.wrong("not a mask: expected a PNG image");
  int orientation = kNotSaid;
  decode_png_mask(mask, out, orientation);
  turn(out, orientation, file);
}

}  // namespace decent
