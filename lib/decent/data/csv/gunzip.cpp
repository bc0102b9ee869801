#include "decent/data/csv/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include "decent/core/error.h"

namespace decent {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

// An inflate stream that frees what zlib holds.
class Inflater {
 public:
  explicit Inflater(std::span<const std::byte> bytes) : left_(bytes) {
    constexpr int kGzip = 16;  // zlib: gzip's header, not its own
    if (inflateInit2(&stream_, kGzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // The next piece; `out` says how much of it there is. What zlib says.
  int next(std::span<char>& out) {
    const auto in =
        static_cast<uInt>(std::min<std::size_t>(left_.size(), std::numeric_limits<uInt>::max()));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    left_ = left_.subspan(in - stream_.avail_in);
    out = out.first(out.size() - stream_.avail_out);
    return result;
  }

  std::span<const std::byte> left() const { return left_; }
  void next_member() { inflateReset(&stream_); }

 private:
  z_stream stream_{};
  std::span<const std::byte> left_;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

std::string gunzip(std::span<const std::byte> bytes, std::size_t most_ratio,
                   const std::string& what) {
  constexpr std::size_t kAlways = std::size_t{1} << 20;
  const std::size_t most = std::max(kAlways, bytes.size() * most_ratio);
  Inflater inflater(bytes);
  std::vector<char> piece(kPiece);
  std::string content;
  while (true) {
    std::span<char> out(piece);
    const int result = inflater.next(out);
    // No progress: the bytes end within a member.
    if (result != Z_OK && result != Z_STREAM_END) {
      throw UserError(what + (result == Z_BUF_ERROR ? ": its compressed data ends too early"
                                                    : ": its compressed data is damaged"));
    }
    content.append(out.data(), out.size());
    if (content.size() > most) {
      throw UserError(what + ": it inflates to more than " + std::to_string(most_ratio) +
                      " times its size, as text does not; where it is right, decompress it first "
                      "(gunzip)");
    }
    if (result != Z_STREAM_END) continue;
    if (!is_gzip(inflater.left())) return content;  // gzip ignores what follows, too
    inflater.next_member();
  }
}

}  // namespace decent
