// Any bytes are a list of images with their labels or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "decent/core/error.h"
#include "decent/data/images/listing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const decent::ImageListing listing =
        decent::parse_image_list({reinterpret_cast<const char*>(data), size}, "folder/list.csv");
    const auto classes = static_cast<std::int64_t>(listing.classes().size());
    for (std::int64_t i = 0; i < listing.size(); ++i) {
      const bool known = listing.label(i) >= 0 && listing.label(i) < classes;
      if (listing.file(i).empty() || (classes > 0 && !known)) std::abort();
    }
  } catch (const decent::UserError&) {
  }
  return 0;
}
