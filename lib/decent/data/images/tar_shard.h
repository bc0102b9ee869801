#pragma once
// The samples in a shard of WebDataset: neighbouring files of a tar archive that have the same name
// up to its first dot. No torch.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decent {

/// Which members of a sample are read. Endings are in lower case, without the dot in front.
struct ShardReading {
  std::vector<std::string> images;           // endings of which a sample has exactly one
  std::optional<std::string> label = {};     // ending of the label; none: there are no labels
  std::optional<std::string> json_key = {};  // of the label in a JSON object; none: all the text
};

struct ShardSample {
  std::string name;  // of the image
  std::size_t offset = 0, size = 0;
  std::string label;
};

/// The samples in a tar archive, in its order. Reads its headers and the labels. Members that
/// webdataset ignores (names without a dot, `__meta__`) are ignored. `file` is the archive's name
/// for messages. Throws UserError naming the archive and the sample or member.
std::vector<ShardSample> read_tar_shard(std::span<const std::byte> archive, const std::string& file,
                                        const ShardReading& reading);

}  // namespace decent
