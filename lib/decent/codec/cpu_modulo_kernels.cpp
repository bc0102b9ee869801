// The loops of the CPU, each simple enough for the compiler to vectorise. Between packing and
// arithmetic every code has a byte of its own.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "decent/codec/modulo_code.h"
#include "decent/codec/modulo_kernels.h"
#include "decent/core/instruction_sets.h"

namespace decent {
namespace {

static_assert(std::endian::native == std::endian::little, "the first code is in the low bits");

DECENT_ELEMENT std::uint32_t load_word(const std::uint8_t* bytes) {
  std::uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Elements that are processed at a time, so that what one loop passes to the next stays in the
// first level of cache.
constexpr std::int64_t kBlockElements = 1024;

// ---- encoding ----

// Packs codes of a byte each into kBits each. It fills whole bytes, and so reads up to 3 codes past
// the last one.
template <int kBits>
DECENT_ELEMENT void pack(const std::uint8_t* codes, std::uint8_t* packed, std::int64_t n) {
  const std::int64_t bytes = bytes_of_codes(n, kBits);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < bytes; ++i) {
    if constexpr (kBits == 2) {
      const std::uint32_t four = load_word(codes + 4 * i);
      packed[i] = static_cast<std::uint8_t>(four | four >> 6 | four >> 12 | four >> 18);
    } else {
      packed[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    }
  }
}

template <int kBits>
struct EncodeLoop {
  template <typename T>
  static DECENT_ELEMENT void run(const T* x, std::int64_t n, T inverse, T dither,
                                 std::uint8_t* packed) {
    for (std::int64_t begin = 0; begin < n; begin += kBlockElements) {
      const std::int64_t count = std::min(kBlockElements, n - begin);
      if constexpr (kBits == 8) {
        encode(x + begin, count, inverse, dither, packed + begin);
      } else {
        std::uint8_t codes[kBlockElements + 4];
        encode(x + begin, count, inverse, dither, codes);
        std::memset(codes + count, 0, 4);
        pack<kBits>(codes, packed + begin * kBits / 8, count);
      }
    }
  }

 private:
  template <typename T>
  static DECENT_ELEMENT void encode(const T* x, std::int64_t n, T inverse, T dither,
                                    std::uint8_t* codes) {
#pragma GCC ivdep  // arrays do not overlap, here and below
    for (std::int64_t i = 0; i < n; ++i) codes[i] = modulo_code<kBits>(x[i], inverse, dither);
  }
};

// ---- mixing ----

// Unpacks codes of kBits each into a byte each, whose higher bits are arbitrary. Writes up to 3
// codes past the last one.
template <int kBits>
DECENT_ELEMENT void unpack(const std::uint8_t* packed, std::uint8_t* codes, std::int64_t n) {
  const std::int64_t bytes = bytes_of_codes(n, kBits);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::uint32_t byte = packed[i];
    if constexpr (kBits == 2) {
      const std::uint32_t four = byte | byte << 6 | byte << 12 | byte << 18;
      std::memcpy(codes + 4 * i, &four, sizeof four);
    } else {
      const auto two = static_cast<std::uint16_t>(byte | byte << 4);
      std::memcpy(codes + 2 * i, &two, sizeof two);
    }
  }
}

// Computes the differences of up to kBlockElements codes of two messages.
template <int kBits>
struct DifferenceLoop {
  static DECENT_ELEMENT void run(const std::uint8_t* own, const std::uint8_t* other,
                                 std::int8_t* differences, std::int64_t n) {
    if constexpr (kBits == 8) {
      subtract(own, other, differences, n);
    } else {
      std::uint8_t own_codes[kBlockElements + 4];
      std::uint8_t other_codes[kBlockElements + 4];
      unpack<kBits>(own, own_codes, n);
      unpack<kBits>(other, other_codes, n);
      subtract(own_codes, other_codes, differences, n);
    }
  }

 private:
  static DECENT_ELEMENT void subtract(const std::uint8_t* own, const std::uint8_t* other,
                                      std::int8_t* differences, std::int64_t n) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i)
      differences[i] = modulo_difference<kBits>(own[i], other[i]);
  }
};

// Counts the differences of 8 bits whose magnitude is `limit` or more.
struct WrappedLoop {
  static DECENT_ELEMENT std::int64_t run(const std::int8_t* differences, std::int32_t limit,
                                         std::int64_t n) {
    std::int32_t wrapped = 0;
    for (std::int64_t i = 0; i < n; ++i)
      wrapped += std::abs(static_cast<std::int32_t>(differences[i])) >= limit ? 1 : 0;
    return wrapped;
  }
};

struct SumLoop {
  static DECENT_ELEMENT void run(std::int32_t* sums, const std::int8_t* differences,
                                 std::int64_t n) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) sums[i] += differences[i];
  }
};

struct AddLoop {
  template <typename T, typename Whole>
  static DECENT_ELEMENT void run(T* x, const Whole* differences, T factor, std::int64_t n) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = std::fma(factor, static_cast<T>(differences[i]), x[i]);
  }
};

// ---- segments ----

// Calls work(segment, elements) for the segments that overlap `range`.
template <typename Work>
void for_each_overlap(std::span<const CodeSegment> segments, const Range& range, const Work& work) {
  auto segment = std::partition_point(segments.begin(), segments.end(),
                                      [&](const CodeSegment& s) { return s.end <= range.begin; });
  for (; segment != segments.end() && segment->begin < range.end; ++segment)
    work(*segment, overlap(range, {segment->begin, segment->end}));
}

// Calls f with the bits as a constant.
template <typename F>
void with_bits(int bits, const F& f) {
  if (bits == 2) return f(std::integral_constant<int, 2>());
  if (bits == 4) return f(std::integral_constant<int, 4>());
  f(std::integral_constant<int, 8>());
}

std::int64_t byte_of(const CodeSegment& segment, std::int64_t element) {
  return segment.byte + (element - segment.begin) * segment.bits / 8;
}

template <class InstructionSet>
struct Cpu {
  template <typename T>
  static void encode(const ModuloEncoding<T>& e, Range range) {
    for_each_overlap(e.segments, range, [&](const CodeSegment& segment, const Range& part) {
      const T inverse = e.factor(segment.exponent);
      with_bits(segment.bits, [&](auto bits) {
        InstructionSet::template run<EncodeLoop<bits()>>(e.x + part.begin, part.numel(), inverse,
                                                         e.dither,
                                                         e.message + byte_of(segment, part.begin));
      });
    });
  }

  template <typename T>
  static void mix(const ModuloMixing<T>& m, Range range) {
    for_each_overlap(m.segments, range, [&](const CodeSegment& segment, const Range& part) {
      const T factor = m.factor(segment.exponent);
      for (std::int64_t begin = part.begin; begin < part.end; begin += kBlockElements)
        mix_block(m, segment, {begin, std::min(part.end, begin + kBlockElements)}, factor);
    });
  }

 private:
  template <typename T>
  static void mix_block(const ModuloMixing<T>& m, const CodeSegment& segment, const Range& block,
                        T factor) {
    const std::int64_t n = block.numel();
    std::array<std::int8_t, kBlockElements> differences;
    if (m.others.size() == 1) {
      subtract(m, segment, block, m.others[0], differences.data());
      InstructionSet::template run<AddLoop>(m.x + block.begin, differences.data(), factor, n);
      return;
    }
    std::array<std::int32_t, kBlockElements> sums{};
    for (const std::uint8_t* other : m.others) {
      subtract(m, segment, block, other, differences.data());
      InstructionSet::template run<SumLoop>(sums.data(), differences.data(), n);
    }
    InstructionSet::template run<AddLoop>(m.x + block.begin, sums.data(), factor, n);
  }

  // Computes the differences to another member's message.
  template <typename T>
  static void subtract(const ModuloMixing<T>& m, const CodeSegment& segment, const Range& block,
                       const std::uint8_t* other, std::int8_t* differences) {
    const std::int64_t at = byte_of(segment, block.begin);
    with_bits(segment.bits, [&](auto bits) {
      InstructionSet::template run<DifferenceLoop<bits()>>(m.own + at, other + at, differences,
                                                           block.numel());
    });
    if (segment.bits < 8 || m.wrapped == nullptr) return;
    std::atomic_ref(*m.wrapped)
        .fetch_add(InstructionSet::template run<WrappedLoop>(differences, m.limit(), block.numel()),
                   std::memory_order_relaxed);
  }
};

}  // namespace

const std::vector<ModuloKernels>& cpu_modulo_kernels_of_all_instruction_sets() {
  static const auto all = for_instruction_sets_here<ModuloKernels>(
      []<class InstructionSet>() { return ModuloKernels::made_of<Cpu<InstructionSet>>(); });
  return all;
}

const ModuloKernels& cpu_modulo_kernels() {
  return cpu_modulo_kernels_of_all_instruction_sets().back();
}

}  // namespace decent
