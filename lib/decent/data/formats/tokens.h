#pragma once
// Files of token ids: those of nanoGPT, which hold nothing else, and those of llm.c, which begin
// with a header of 256 int32 (magic number, version, number of ids), and tar shards of WebDataset
// with arrays of ids. Files come from users, so every field is distrusted. No torch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/data/formats/windows.h"

namespace decent {

/// The type of the unsigned little-endian integers that store ids.
enum class TokenType : std::uint8_t { uint16 = 2, uint32 = 4 };

enum class TokensHeader : std::uint8_t {
  automatic,  // llm.c's if the file begins with one of its magic numbers
  none,
  llm_c,
};

/// Where the ids are in the file.
struct TokensLayout {
  TokenType type = TokenType::uint16;
  std::size_t begin = 0;  // byte of the first
  std::int64_t count = 0;
  std::string doubt = {};  // says that the ids may be wider than the user's `type`; or empty
};

/// `bytes` are the whole file; only its front is looked at. Without a type it is the header's, or
/// uint16. Throws UserError naming `file` and the offset for a header that is missing, unknown,
/// disagrees with the size of the file or has another type, for sizes that are no whole number of
/// ids, and for .npy and gzip files; also, if no type was given, for ids that appear to be wider,
/// judged by the first thousand.
TokensLayout read_tokens_layout(std::span<const std::byte> bytes, TokensHeader header,
                                std::optional<TokenType> type, const std::string& file);

/// Where the ids are in a tar shard: a piece for each array that is not empty.
struct TokenShard {
  IdType type = IdType::uint8;
  std::vector<Piece> pieces;
};

/// The arrays are the members of samples that end in .npy, one in each sample, in their order;
/// other members are ignored. Only headers are looked at. Throws UserError naming `file` and the
/// member: for archives that for_each_tar_member refuses, if no member is an array, and for an
/// array that is damaged, has not one dimension, or holds no ids or ids of another type than the
/// first or `type`.
TokenShard read_token_shard(std::span<const std::byte> archive, std::optional<TokenType> type,
                            const std::string& file);

}  // namespace decent
