#include "decent/core/stream_copy.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

namespace decent {

#ifdef __x86_64__
namespace {

constexpr std::size_t kLineBytes = 64;

// Copies whole cache lines; `to` is aligned to a line.
void stream_by_16_bytes(char* to, const char* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(__m128i)) {
    const auto* const part = reinterpret_cast<const __m128i*>(from + at);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(part));
  }
}

// Stores a whole line at once, so that the processor need not combine smaller stores in a buffer.
__attribute__((target("avx512f"))) void stream_by_lines(char* to, const char* from,
                                                        std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLineBytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
  }
}

}  // namespace

void stream_copy(void* to, const void* from, std::size_t bytes) {
  static const auto stream =
      __builtin_cpu_supports("avx512f") ? &stream_by_lines : &stream_by_16_bytes;
  auto* const out = static_cast<char*>(to);
  const auto* const in = static_cast<const char*>(from);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(out) % kLineBytes;
  if (bytes < before + kLineBytes) {
    std::memcpy(out, in, bytes);
    return;
  }
  const std::size_t lines = (bytes - before) / kLineBytes * kLineBytes;
  std::memcpy(out, in, before);
  stream(out + before, in + before, lines);
  _mm_sfence();  // nothing else orders streaming stores
  std::memcpy(out + before + lines, in + before + lines, bytes - before - lines);
}

#else

void stream_copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace decent
