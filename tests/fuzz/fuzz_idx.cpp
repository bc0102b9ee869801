// Any bytes are a valid input or a UserError, nothing else.

#include <cstddef>
#include <cstdint>

#include "decent/core/error.h"
#include "decent/data/formats/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const decent::Idx idx = decent::read_idx({reinterpret_cast<const std::byte*>(data), size}, "f");
    const std::size_t elements = idx.data.size() / decent::size_of(idx.type);
    for (std::size_t i = 0; i < elements; ++i) idx.element(i);
  } catch (const decent::UserError&) {
  }
  return 0;
}
