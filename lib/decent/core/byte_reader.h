#pragma once
// Little-endian numbers and pieces of bytes, read one after another. No torch.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "decent/core/error.h"

namespace decent {

/// Reads bytes from the front; they must outlive the reader. Reading past their end throws a
/// UserError with the message that the reader was given.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string message)
      : bytes_(bytes), message_(std::move(message)) {}

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  /// Returns the next `size` bytes and moves past them.
  std::span<const std::byte> piece(std::uint64_t size) {
    if (size > left()) throw UserError(message_);
    const auto piece = bytes_.subspan(position_, size);
    position_ += size;
    return piece;
  }

  std::string_view text(std::uint64_t size) {
    const auto bytes = piece(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// Returns the text up to the next line feed and moves past the line feed.
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + position_, left());
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) throw UserError(message_);
    position_ += end + 1;
    return rest.substr(0, end);
  }

  template <std::integral Number>
  Number number() {
    static_assert(std::endian::native == std::endian::little);
    Number value;
    std::memcpy(&value, piece(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string message_;
  std::size_t position_ = 0;
};

}  // namespace decent
