// WebP through libwebp.

#include <webp/decode.h>

#include <cstring>

#include "decent/data/images/decoders.h"
#include "decent/data/images/exif.h"

namespace decent {
namespace {

std::size_t little_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::size_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<std::size_t>(bytes[at + i]);
  return value;
}

int orientation_in_webp(std::span<const std::byte> file) {
  constexpr std::size_t kChunkHeaderBytes = 8;  // of a chunk: its name and length
  std::size_t at = 12;
  while (file.size() >= at + kChunkHeaderBytes) {
    const std::size_t length = little_endian(file, at + 4);
    if (length > file.size() - at - kChunkHeaderBytes) break;
    if (std::memcmp(file.data() + at, "EXIF", 4) == 0)
      return exif_orientation(file.subspan(at + kChunkHeaderBytes, length));
    at += kChunkHeaderBytes + length + length % 2;
  }
  return kNotSaid;
}

const char* text_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "the file ends too early";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is no memory to decode it";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it has a feature that libwebp does not know";
    default:
      return "its content is not valid";
  }
}

}  // namespace

void decode_webp(const ImageFile& file, Pixels& out, int& orientation) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes.data());
  const auto expect = [&](VP8StatusCode status) {
    if (status != VP8_STATUS_OK)
      file.wrong(std::string("a damaged WebP image: ") + text_of(status));
  };
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) file.wrong("libwebp is of another version");
  expect(WebPGetFeatures(bytes, file.bytes.size(), &config.input));
  if (config.input.has_animation != 0) file.wrong("an animation, not an image");
  file.begin(out, config.input.height, config.input.width, 3);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = out.bytes.data(),
                          .stride = static_cast<int>(out.width * 3),
                          .size = out.bytes.size()};
  expect(WebPDecode(bytes, file.bytes.size(), &config));
  orientation = orientation_in_webp(file.bytes);
}

}  // namespace decent
