#pragma once
// Windows of a long sequence of ids, for models that predict the next one. No torch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/options.h"
#include "decent/data/source.h"

namespace decent {

/// The type of stored ids, little-endian.
enum class IdType : std::uint8_t { uint8, uint16, uint32, int16, int32, int64 };

/// Ids that are stored one after another.
struct Piece {
  std::size_t begin = 0;  // byte of the first
  std::int64_t count = 0;
};

/// The ids of a file: those of its pieces, one piece after another.
struct Sequence {
  std::shared_ptr<const MappedFile> file;
  IdType type = IdType::uint8;
  std::vector<Piece> pieces;
  std::string note = {};  // on how the ids are read; or empty
};

struct Windows {
  std::int64_t length = 0;  // >= 1
  std::int64_t stride = 0;  // >= 1
};

/// Fields x and y, int64 [length]: x of sample i begins with id number i * stride, and y with the
/// id after it. There are as many samples as fit into the sequence with their y. With a vocabulary,
/// reading an id outside of it throws a UserError with file and byte offset. Ids are read only when
/// samples are. Throws UserError if there is no sample.
std::unique_ptr<Source> make_windows_source(Sequence sequence, const Windows& windows,
                                            std::optional<std::int64_t> vocabulary);

/// The recipe keys for Windows, and their values.
OptionKey length_key();
OptionKey stride_key();
Windows windows_of(const Options& options);

}  // namespace decent
