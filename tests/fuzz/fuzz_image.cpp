// Any bytes are an image or a mask of the size that it says or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "decent/core/error.h"
#include "decent/data/images/decode.h"

namespace {

constexpr std::int64_t kFewPixels = 1 << 16;

void expect_whole(const decent::Pixels& pixels, int channels) {
  const bool whole = pixels.count() >= 1 && pixels.count() <= kFewPixels &&
                     pixels.channels == channels &&
                     pixels.bytes.size() == pixels.count() * static_cast<std::size_t>(channels);
  if (!whole) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  decent::Pixels pixels;
  for (const int channels : {1, 3}) {
    try {
      decent::decode_image(file, "input", channels, pixels, kFewPixels);
      expect_whole(pixels, channels);
    } catch (const decent::UserError&) {
    }
  }
  try {
    decent::decode_mask(file, "input", pixels, kFewPixels);
    expect_whole(pixels, 1);
  } catch (const decent::UserError&) {
  }
  return 0;
}
