// Any bytes are a valid input or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <string>

#include "decent/config/loader.h"
#include "decent/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const decent::Environment nothing = [](const std::string&) { return std::nullopt; };
    const std::string text(reinterpret_cast<const char*>(data), size);
    const decent::Recipe recipe = decent::parse_recipe(text, "input.yaml", {}, nothing);
    // What is valid prints, and reads back to the same.
    const std::string printed = decent::print_recipe(recipe);
    if (decent::parse_recipe(printed, "input.yaml", {}, nothing) != recipe) __builtin_trap();
  } catch (const decent::UserError&) {
  }
  return 0;
}
