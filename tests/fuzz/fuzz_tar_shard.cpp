// Any bytes are samples that lie in them, or a UserError, nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "decent/core/error.h"
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
  return 0;
}
