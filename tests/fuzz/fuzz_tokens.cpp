// Any bytes are a valid input, whose ids lie within them, or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "decent/core/error.h"
#include "decent/data/formats/tokens.h"

namespace {

void read(std::span<const std::byte> bytes, decent::TokensHeader header,
          std::optional<decent::TokenType> type) {
  try {
    const decent::TokensLayout layout = decent::read_tokens_layout(bytes, header, type, "f");
    const auto end = layout.begin +
                     static_cast<std::size_t>(layout.count) * static_cast<std::size_t>(layout.type);
    if (layout.count < 0 || end != bytes.size()) std::abort();
  } catch (const decent::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using decent::TokensHeader;
  using decent::TokenType;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const auto header : {TokensHeader::automatic, TokensHeader::none, TokensHeader::llm_c}) {
    read(bytes, header, std::nullopt);
    read(bytes, header, TokenType::uint16);
    read(bytes, header, TokenType::uint32);
  }
  return 0;
}
