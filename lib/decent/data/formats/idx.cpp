#include "decent/data/formats/idx.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/gzip.h"
#include "decent/core/host.h"
#include "decent/core/text.h"

namespace decent {
namespace {

constexpr std::size_t kMagicBytes = 4;  // two zeros, the type, the number of dimensions
constexpr std::size_t kExtentBytes = 4;
constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kLongestHeader = kMagicBytes + kMostDimensions * kExtentBytes;
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

std::uint8_t number_at(std::span<const std::byte> bytes, std::size_t offset) {
  return std::to_integer<std::uint8_t>(bytes[offset]);
}

std::int64_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8U | std::to_integer<std::uint32_t>(byte);
  return value;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<std::size_t>(byte);
    text += (text.empty() ? "" : " ") + std::string{kDigits[value / 16], kDigits[value % 16]};
  }
  return text;
}

struct Header {
  IdxType type = IdxType::uint8;
  std::vector<std::int64_t> shape;
  std::size_t bytes = 0;       // of the header
  std::size_t data_bytes = 0;  // according to the header
};

std::optional<IdxType> type_of(std::uint8_t code) {
  for (const IdxType type : {IdxType::uint8, IdxType::int8, IdxType::int16, IdxType::int32})
    if (code == static_cast<std::uint8_t>(type)) return type;
  return std::nullopt;
}

class HeaderReader {
 public:
  // `bytes` are the first of the file, or all.
  HeaderReader(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  Header read() const {
    if (bytes_.size() < kMagicBytes || number_at(bytes_, 0) != 0 || number_at(bytes_, 1) != 0) {
      fail("not an IDX file: it begins with the bytes '" +
           hexadecimal(bytes_.first(std::min(bytes_.size(), kMagicBytes))) +
           "'; expected 00 00, the type of the elements (08: bytes) and the number of dimensions");
    }
    Header header;
    header.type = read_type(number_at(bytes_, 2));
    const std::size_t dimensions = number_at(bytes_, 3);
    if (dimensions == 0 || dimensions > kMostDimensions) {
      fail("byte 3: " + std::to_string(dimensions) + " dimensions; expected 1 to " +
           std::to_string(kMostDimensions));
    }
    header.bytes = kMagicBytes + dimensions * kExtentBytes;
    if (bytes_.size() < header.bytes) {
      fail("ends at byte " + std::to_string(bytes_.size()) + ", within its header of " +
           std::to_string(header.bytes) + " bytes");
    }
    for (std::size_t i = kMagicBytes; i < header.bytes; i += kExtentBytes)
      header.shape.push_back(big_endian(bytes_.subspan(i, kExtentBytes)));
    header.data_bytes = bytes_of(header);
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError("'" + file_ + "': " + reason);
  }

  IdxType read_type(std::uint8_t code) const {
    if (const std::optional<IdxType> type = type_of(code)) return *type;
    const bool floating = code == 0x0d || code == 0x0e;
    const std::byte byte{code};
    fail("byte 2: elements of type " + hexadecimal({&byte, 1}) +
         (floating ? " are floating point" : " are unknown") +
         "; expected integers (08: bytes, 09, 0b or 0c). Formats npz and safetensors take any");
  }

  std::size_t bytes_of(const Header& header) const {
    auto bytes = static_cast<std::int64_t>(size_of(header.type));
    for (const std::int64_t extent : header.shape) {
      if (extent != 0 && bytes > (kMostBytes - static_cast<std::int64_t>(kLongestHeader)) / extent)
        fail("byte 4: the shape " + shape_text(header.shape) + " is too large");
      bytes *= extent;
    }
    return static_cast<std::size_t>(bytes);
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
};

std::string asks_for(const Header& header) {
  return "its header asks for " + counted(static_cast<std::int64_t>(header.data_bytes), "byte") +
         " of elements, shape " + shape_text(header.shape);
}

Idx read_plain(std::span<const std::byte> bytes, const std::string& file) {
  Header header = HeaderReader(bytes, file).read();
  const std::span<const std::byte> data = bytes.subspan(header.bytes);
  if (data.size() != header.data_bytes) {
    throw UserError("'" + file + "': damaged: " + asks_for(header) + ", and from byte " +
                    std::to_string(header.bytes) + " on it has " + std::to_string(data.size()));
  }
  return {.type = header.type, .shape = std::move(header.shape), .data = data};
}

// Called before memory is allocated.
void refuse_bomb(const Header& header, std::size_t compressed, const std::string& file) {
  if (header.data_bytes / kMaxDeflateRatio > compressed) {
    throw UserError("'" + file + "': damaged: " + asks_for(header) + "; its " +
                    counted(static_cast<std::int64_t>(compressed), "compressed byte") +
                    " cannot hold as much");
  }
  if (header.data_bytes > static_cast<std::size_t>(machine_memory())) {
    throw UserError("'" + file + "': " + asks_for(header) +
                    ", more than this machine has memory; decompress it with gunzip: plain files "
                    "stay on disk");
  }
}

Idx read_compressed(std::span<const std::byte> bytes, const std::string& file) {
  GzipReader reader(bytes, "'" + file + "'");
  std::array<std::byte, kLongestHeader> first{};
  const std::size_t had = reader.read(first);
  const Header header = HeaderReader(std::span(first).first(had), file).read();
  refuse_bomb(header, bytes.size(), file);
  Idx idx{.type = header.type, .shape = header.shape, .data = {}};
  idx.storage.resize(header.data_bytes);
  const std::size_t early = std::min(had - header.bytes, header.data_bytes);
  std::copy_n(first.begin() + static_cast<std::ptrdiff_t>(header.bytes), early,
              idx.storage.begin());
  const std::size_t got = early + reader.read(std::span(idx.storage).subspan(early));
  std::byte more{};
  const bool longer = had - header.bytes > early || reader.read({&more, 1}) > 0;
  if (got < header.data_bytes || longer) {
    throw UserError("'" + file + "': damaged: " + asks_for(header) + ", and it has " +
                    (longer ? "more" : std::to_string(got)));
  }
  idx.data = idx.storage;
  return idx;
}

}  // namespace

std::size_t size_of(IdxType type) {
  return type == IdxType::int32 ? 4 : type == IdxType::int16 ? 2 : 1;
}

std::int64_t Idx::element(std::size_t index) const {
  const std::size_t size = size_of(type);
  const std::int64_t value = big_endian(data.subspan(index * size, size));
  switch (type) {
    case IdxType::uint8:
      return value;
    case IdxType::int8:
      return static_cast<std::int8_t>(value);
    case IdxType::int16:
      return static_cast<std::int16_t>(value);
    case IdxType::int32:
      return static_cast<std::int32_t>(value);
  }
  __builtin_unreachable();
}

Idx read_idx(std::span<const std::byte> bytes, const std::string& file) {
  return is_gzip(bytes) ? read_compressed(bytes, file) : read_plain(bytes, file);
}

}  // namespace decent
