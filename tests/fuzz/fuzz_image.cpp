// Any bytes are an image of the size that it says or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "decent/core/error.h"
#include "decent/data/images/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kFewPixels = 1 << 16;
  decent::Pixels pixels;
  for (const int channels : {1, 3}) {
    try {
      decent::decode_image({reinterpret_cast<const std::byte*>(data), size}, "input", channels,
                           pixels, kFewPixels);
    } catch (const decent::UserError&) {
      continue;
    }
    const bool whole = pixels.count() >= 1 && pixels.count() <= kFewPixels &&
                       pixels.channels == channels &&
                       pixels.bytes.size() == pixels.count() * static_cast<std::size_t>(channels);
    if (!whole) std::abort();
  }
  return 0;
}
