// Any bytes are a valid input or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <string>

#include "decent/core/error.h"
#include "decent/data/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    decent::read_npz({reinterpret_cast<const std::byte*>(data), size}, "input");
  } catch (const decent::UserError&) {
  }
  return 0;
}
