#include "decent/core/stream_copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

namespace decent {

#ifdef __SSE2__

void stream_copy(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(out) % kLine;
  if (bytes < before + kLine) {
    std::memcpy(out, in, bytes);
    return;
  }
  std::memcpy(out, in, before);
  const std::size_t lines = (bytes - before) / kLine;
  for (std::size_t i = 0; i < lines; ++i) {
    const std::size_t at = before + i * kLine;
    __m128i line[4];
    std::memcpy(line, in + at, kLine);
    for (int part = 0; part < 4; ++part)
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + at) + part, line[part]);
  }
  _mm_sfence();  // such stores are ordered by nothing else
  const std::size_t done = before + lines * kLine;
  std::memcpy(out + done, in + done, bytes - done);
}

#else

void stream_copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace decent
