#include "decent/core/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "decent/core/error.h"

namespace decent {

struct GzipReader::Stream {
  z_stream zlib{};
};

namespace {

constexpr std::byte kMagic0{0x1f};
constexpr std::byte kMagic1{0x8b};
constexpr int kGzipHeaders = 16;  // added to the size of the window

uInt piece_of(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == kMagic0 && bytes[1] == kMagic1;
}

GzipReader::GzipReader(std::span<const std::byte> bytes, std::string what)
    : left_(bytes),
      size_(bytes.size()),
      what_(std::move(what)),
      stream_(std::make_unique<Stream>()) {
  if (inflateInit2(&stream_->zlib, MAX_WBITS + kGzipHeaders) != Z_OK)
    throw std::runtime_error("zlib has no memory");
}

GzipReader::~GzipReader() { inflateEnd(&stream_->zlib); }

void GzipReader::fail(const std::string& reason) const {
  throw UserError(what_ + ": damaged: " + reason + " at byte " +
                  std::to_string(size_ - left_.size()));
}

// Whether another file follows. Zeros are skipped, because tapes and disks pad files with them.
bool GzipReader::next_member() {
  while (!left_.empty() && left_[0] == std::byte{0}) left_ = left_.subspan(1);
  if (left_.empty()) return false;
  if (!is_gzip(left_)) fail("something else follows the compressed data");
  inflateReset(&stream_->zlib);
  return true;
}

std::size_t GzipReader::read(std::span<std::byte> out) {
  z_stream& zlib = stream_->zlib;
  std::size_t filled = 0;
  while (filled < out.size() && !ended_) {
    const uInt in = piece_of(left_.size());
    const uInt space = piece_of(out.size() - filled);
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
    zlib.avail_in = in;
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    zlib.avail_out = space;
    const int result = inflate(&zlib, Z_NO_FLUSH);
    left_ = left_.subspan(in - zlib.avail_in);
    filled += space - zlib.avail_out;
    if (result == Z_STREAM_END) {
      ended_ = !next_member();
    } else if (result == Z_BUF_ERROR || (result == Z_OK && left_.empty() && zlib.avail_out > 0)) {
      fail("its compressed data is cut short");
    } else if (result != Z_OK) {
      fail("its compressed data is broken");
    }
  }
  return filled;
}

}  // namespace decent
