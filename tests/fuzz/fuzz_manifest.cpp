// Any bytes are a valid manifest, a damaged one or one of a later version, nothing else.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "decent/checkpoint/checksum.h"
#include "decent/checkpoint/manifest.h"
#include "decent/core/error.h"

namespace {

void check(std::string_view text) {
  try {
    const decent::Manifest manifest = decent::parse_manifest(text, "manifest.json");
    // What is valid prints, and reads back to the same.
    const std::string printed = decent::print_manifest(manifest);
    if (decent::parse_manifest(printed, "manifest.json") != manifest) __builtin_trap();
  } catch (const decent::CheckpointDamaged&) {
  } catch (const decent::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  // No mutation finds a checksum that fits: the JSON reader is only reached with the right one, in
  // place of the first line and before a text that has none.
  for (const std::string& body : {text.substr(text.find('\n') + 1), text}) {
    check("{\"checksum\": \"" + decent::checksum_of(body) + "\",\n" + body);
  }
  return 0;
}
