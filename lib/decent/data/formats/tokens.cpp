#include "decent/data/formats/tokens.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "decent/core/byte_reader.h"
#include "decent/core/error.h"
#include "decent/core/npy.h"
#include "decent/core/text.h"
#include "decent/data/formats/tar.h"

namespace decent {
namespace {

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int32_t kMultipleChoice = 20240522;  // llm.c's files for HellaSwag and MMLU

// A kind of file that llm.c's dev/data/data_common.py writes.
struct Kind {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};

constexpr std::array kKinds = {Kind{20240520, 1, TokenType::uint16},   // GPT-2
                               Kind{20240801, 7, TokenType::uint32}};  // Llama 3

std::size_t width_of(TokenType type) { return static_cast<std::size_t>(type); }

std::string name_of(TokenType type) { return type == TokenType::uint16 ? "uint16" : "uint32"; }

class LayoutReader {
 public:
  LayoutReader(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  TokensLayout read(TokensHeader header, std::optional<TokenType> type) const {
    const std::int32_t magic = number_at(0);
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const Kind& each) { return each.magic == magic; });
    if (header == TokensHeader::automatic) {
      if (kind == kKinds.end()) refuse_other_files(magic);
      header = kind == kKinds.end() ? TokensHeader::none : TokensHeader::llm_c;
    }
    if (header == TokensHeader::none) {
      TokensLayout layout = read_bare(type.value_or(TokenType::uint16));
      layout.doubt = doubt(layout.type);
      if (!type && !layout.doubt.empty())
        fail(layout.doubt + " (dtype: uint16 reads them all the same)");
      return layout;
    }
    if (kind == kKinds.end()) {
      fail(
          "byte 0: no header of llm.c, which begins with the number 20240520 (ids of uint16) or "
          "20240801 (uint32); it begins with " +
          std::to_string(magic));
    }
    return read_with_header(*kind, type);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError("'" + file_ + "': " + reason);
  }

  // A number of the header; 0 if the file is too short.
  std::int32_t number_at(std::size_t place) const {
    const std::size_t offset = place * sizeof(std::int32_t);
    if (bytes_.size() < offset + sizeof(std::int32_t)) return 0;
    return ByteReader(bytes_.subspan(offset), "").number<std::int32_t>();
  }

  bool begins_with(std::string_view start) const {
    return bytes_.size() >= start.size() &&
           std::equal(start.begin(), start.end(), bytes_.begin(),
                      [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
  }

  // Refuses files that would be read as ids but hold something else.
  void refuse_other_files(std::int32_t magic) const {
    if (begins_with("\x93NUMPY"))
      fail("is a .npy file; expected the ids alone: array.astype('uint16').tofile(FILE)");
    if (begins_with("\x1f\x8b\x08"))
      fail("is compressed by gzip; decompress it first: gunzip -k FILE");
    if (magic == kMultipleChoice)
      fail("byte 0: is a file of llm.c for multiple-choice questions (20240522), no sequence");
  }

  TokensLayout read_bare(TokenType type) const {
    if (bytes_.size() % width_of(type) != 0) {
      fail("has " + counted(static_cast<std::int64_t>(bytes_.size()), "byte") +
           ", no whole number of " + name_of(type) + " ids");
    }
    return {.type = type,
            .begin = 0,
            .count = static_cast<std::int64_t>(bytes_.size() / width_of(type))};
  }

  // Whether the first ids may really be wider, with upper bytes that are 0.
  bool may_be_wider(std::size_t wider, TokenType type) const {
    constexpr std::size_t kMinCheckedIds = 16;
    constexpr std::size_t kMaxCheckedIds = 1000;
    const std::size_t count = std::min(kMaxCheckedIds, bytes_.size() / wider);
    if (wider <= width_of(type) || bytes_.size() % wider != 0 || count < kMinCheckedIds)
      return false;
    std::size_t above_zero = 0;
    for (std::size_t id = 0; id < count; ++id) {
      const auto sum = [&](std::size_t begin, std::size_t end) {
        const auto bytes = bytes_.subspan(id * wider + begin, end - begin);
        return std::accumulate(bytes.begin(), bytes.end(), std::byte{0}, std::bit_or());
      };
      if (sum(width_of(type), wider) != std::byte{0}) return false;
      above_zero += sum(0, width_of(type)) != std::byte{0};
    }
    return above_zero > count / 2;
  }

  std::string doubt(TokenType type) const {
    const auto text = [&](const std::string& bits, const std::string& way_out) {
      return "read as " + name_of(type) + ", its first ids are followed by zeros, as ids of " +
             bits + " bits are; " + way_out;
    };
    if (may_be_wider(8, type))
      return text("64",
                  "numpy.fromfile(FILE, 'uint64').astype('uint32').tofile(..) writes ids "
                  "that are read with dtype: uint32");
    return may_be_wider(4, type) ? text("32", "dtype: uint32 reads them") : "";
  }

  TokensLayout read_with_header(const Kind& kind, std::optional<TokenType> type) const {
    if (bytes_.size() < kHeaderBytes) {
      fail("ends at byte " + std::to_string(bytes_.size()) +
           ", within llm.c's header of 1024 bytes");
    }
    if (number_at(1) != kind.version) {
      fail("byte 4: version " + std::to_string(number_at(1)) + " of llm.c's header; expected " +
           std::to_string(kind.version) + " (header: none for ids without a header)");
    }
    if (type && *type != kind.type)
      fail("byte 0: its header says " + name_of(kind.type) + ", dtype says " + name_of(*type));
    const std::int64_t count = number_at(2);
    const std::size_t left = bytes_.size() - kHeaderBytes;
    if (count < 0 || left / width_of(kind.type) != static_cast<std::size_t>(count) ||
        left % width_of(kind.type) != 0) {
      fail("byte 8: damaged: its header says " + counted(count, name_of(kind.type) + " id") +
           ", and from byte 1024 on it has " + counted(static_cast<std::int64_t>(left), "byte"));
    }
    return {.type = kind.type, .begin = kHeaderBytes, .count = count};
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
};

struct ArrayType {
  std::string_view descr;  // in the header of a .npy array
  IdType type;
  std::string_view name;
};

constexpr std::array kArrayTypes = {
    ArrayType{"|u1", IdType::uint8, "uint8"},   ArrayType{"<u2", IdType::uint16, "uint16"},
    ArrayType{"<u4", IdType::uint32, "uint32"}, ArrayType{"<i2", IdType::int16, "int16"},
    ArrayType{"<i4", IdType::int32, "int32"},   ArrayType{"<i8", IdType::int64, "int64"}};

std::size_t width_of(const ArrayType& type) {
  return static_cast<std::size_t>(type.descr[2] - '0');
}

class TokenShardReader {
 public:
  TokenShardReader(std::span<const std::byte> archive, std::optional<TokenType> type,
                   const std::string& file)
      : archive_(archive), type_(type), file_(file) {}

  TokenShard read() && {
    for_each_tar_member(archive_, file_, [&](const TarMember& member) { add(member); });
    if (first_ == nullptr) {
      throw UserError("'" + file_ + "': has no arrays of ids, members whose names end in .npy");
    }
    return std::move(shard_);
  }

 private:
  void add(const TarMember& member) {
    const auto name = name_in_sample(member.name);
    if (!name || (name->ending != "npy" && !name->ending.ends_with(".npy"))) return;
    if (first_ != nullptr && name->key == key_)
      wrong(member, "the second array of its sample; expected one");
    key_ = name->key;
    const NpyLayout layout = parse_npy_layout(archive_.subspan(member.offset, member.size),
                                              "'" + file_ + "', member " + in_quotes(member.name));
    const ArrayType& type = type_of(member, layout);
    if (first_ == nullptr) first_ = &type;
    if (&type != first_) {
      wrong(member, "ids of " + std::string(type.name) + ", those of the members before it are " +
                        std::string(first_->name));
    }
    add_piece(member, layout, width_of(type));
  }

  const ArrayType& type_of(const TarMember& member, const NpyLayout& layout) const {
    const auto type =
        std::find_if(kArrayTypes.begin(), kArrayTypes.end(),
                     [&](const ArrayType& each) { return each.descr == layout.descr; });
    if (type == kArrayTypes.end()) {
      wrong(member, "elements of type " + in_quotes(layout.descr) +
                        "; expected ids of uint8, uint16, uint32, int16, int32 or int64");
    }
    if (type_ && type->name != name_of(*type_)) {
      wrong(member, "ids of " + std::string(type->name) + ", dtype says " + name_of(*type_) +
                        "; without dtype its own type is taken");
    }
    return *type;
  }

  void add_piece(const TarMember& member, const NpyLayout& layout, std::size_t width) {
    if (layout.shape.size() != 1) {
      wrong(member, "an array of shape " + shape_text(layout.shape) +
                        "; expected one dimension, the ids of a text");
    }
    const std::size_t left = member.size - layout.data_offset;
    const auto count = static_cast<std::size_t>(layout.shape[0]);
    if (left % width != 0 || left / width != count) {
      wrong(member, "damaged: its header says " + counted(layout.shape[0], "id") +
                        ", and behind it there are " +
                        counted(static_cast<std::int64_t>(left), "byte"));
    }
    shard_.type = first_->type;
    if (count > 0) shard_.pieces.push_back({member.offset + layout.data_offset, layout.shape[0]});
  }

  [[noreturn]] void wrong(const TarMember& member, const std::string& problem) const {
    throw UserError("'" + file_ + "', member " + in_quotes(member.name) + ": " + problem);
  }

  std::span<const std::byte> archive_;
  std::optional<TokenType> type_;
  const std::string& file_;
  TokenShard shard_;
  const ArrayType* first_ = nullptr;  // of the first array
  std::string key_;                   // of the sample with the last array
};

}  // namespace

TokenShard read_token_shard(std::span<const std::byte> archive, std::optional<TokenType> type,
                            const std::string& file) {
  return TokenShardReader(archive, type, file).read();
}

TokensLayout read_tokens_layout(std::span<const std::byte> bytes, TokensHeader header,
                                std::optional<TokenType> type, const std::string& file) {
  return LayoutReader(bytes, file).read(header, type);
}

}  // namespace decent
