#pragma once
// The bytes of files that gzip writes, for tests.

#include <zlib.h>

#include <string>
#include <string_view>

namespace decent::testing {

inline std::string gzip_bytes(std::string_view content) {
  constexpr int kGzipHeader = 16;
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipHeader, MAX_MEM_LEVEL,
               Z_DEFAULT_STRATEGY);
  std::string bytes(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

}  // namespace decent::testing
