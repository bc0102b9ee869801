// Any bytes are samples, or ids, that lie in them, or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "decent/core/error.h"
#include "decent/data/formats/tokens.h"
#include "decent/data/images/tar_shard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto archive = std::as_bytes(std::span(data, size));
  for (const std::optional<std::string>& json_key :
       {std::optional<std::string>(), std::optional<std::string>("class")}) {
    const decent::ShardReading reading{
        .images = {"jpg", "png"}, .label = json_key ? "json" : "cls", .json_key = json_key};
    try {
      for (const auto& sample : decent::read_tar_shard(archive, "a.tar", reading)) {
        const bool inside = sample.offset <= size && sample.size <= size - sample.offset;
        if (!inside || sample.name.empty() || sample.label.empty()) std::abort();
      }
    } catch (const decent::UserError&) {
    }
  }
  try {
    const decent::TokenShard shard = decent::read_token_shard(archive, std::nullopt, "a.tar");
    for (const decent::Piece& piece : shard.pieces) {
      // An id has at least a byte.
      const auto count = static_cast<std::size_t>(piece.count);
      if (piece.count <= 0 || piece.begin > size || count > size - piece.begin) std::abort();
    }
  } catch (const decent::UserError&) {
  }
  return 0;
}
