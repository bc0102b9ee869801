#pragma once
// Encoding and mixing of a bucket as launches of blocks of threads, and the work of one thread.
// Plain C++ with no call of CUDA: the tests run every thread of every block on the CPU and compare
// bits.
//
// A thread takes kElementsOfThread consecutive elements, whose codes are whole bytes. A launch's
// arguments hold a table of segments (at most 4 KiB), in which a block finds its own.

#include <cmath>
#include <cstdint>
#include <span>

#include "decent/codec/modulo_code.h"
#include "decent/codec/modulo_kernels.h"
#include "decent/core/element.h"

namespace decent::cuda {

inline constexpr unsigned kCodeThreads = 256;
inline constexpr std::int64_t kElementsOfThread = 16;
inline constexpr std::int64_t kElementsOfBlock = kCodeThreads * kElementsOfThread;

/// A part of a bucket whose codes have one width and one grid.
template <typename T>
struct CodeEntry {
  std::int64_t begin;  // element of the bucket
  std::int64_t numel;
  std::int64_t byte;  // of the message
  int bits;
  T factor;  // encoding: 1 / s'; mixing: weight s'
};

/// The arguments of one launch that encodes or mixes. A thread adds up the differences to all other
/// members.
template <typename T>
struct CodeLaunch {
  static constexpr int kMaxEntries = 80;

  T* x;
  T dither;               // encoding
  std::uint8_t* message;  // encoding
  const std::uint8_t* own;
  const std::uint8_t* others;
  std::int64_t stride;
  int members;  // others
  int limit;    // differences of 8 bits from this magnitude on are counted in `wrapped`
  std::int64_t* wrapped;
  int count;                              // of entries
  unsigned first_block[kMaxEntries + 1];  // of each entry; the last is the number of blocks
  CodeEntry<T> entries[kMaxEntries];
};

/// The launch of an encoding, without entries.
template <typename T>
CodeLaunch<T> launch_of(const ModuloEncoding<T>& encoding) {
  CodeLaunch<T> launch{};
  launch.x = const_cast<T*>(encoding.x);  // encode_thread only reads it
  launch.dither = encoding.dither;
  launch.message = encoding.message;
  return launch;
}

/// The launch of a mixing, without entries.
template <typename T>
CodeLaunch<T> launch_of(const ModuloMixing<T>& mixing) {
  CodeLaunch<T> launch{};
  launch.x = mixing.x;
  launch.own = mixing.own;
  launch.others = mixing.others[0];
  launch.stride = mixing.others.size() > 1 ? mixing.others[1] - mixing.others[0] : 0;
  launch.members = static_cast<int>(mixing.others.size());
  launch.limit = mixing.limit();
  launch.wrapped = mixing.wrapped;
  return launch;
}

/// Calls submit(launch) for as many launches as an encoding or a mixing needs.
template <template <typename> class Work, typename T, typename Submit>
void for_each_code_launch(const Work<T>& work, const Submit& submit) {
  CodeLaunch<T> launch = launch_of(work);
  static_assert(sizeof(launch) <= 4096);
  for (const CodeSegment& segment : work.segments) {
    const std::int64_t numel = segment.end - segment.begin;
    const auto blocks = static_cast<unsigned>((numel + kElementsOfBlock - 1) / kElementsOfBlock);
    launch.entries[launch.count] = {segment.begin, numel, segment.byte, segment.bits,
                                    work.factor(segment.exponent)};
    launch.first_block[launch.count + 1] = launch.first_block[launch.count] + blocks;
    if (++launch.count == launch.kMaxEntries) {
      submit(launch);
      launch.count = 0;
    }
  }
  if (launch.count > 0) submit(launch);
}

/// The elements of one thread, and where their codes are.
template <typename T>
struct Group {
  const CodeEntry<T>* entry;
  std::int64_t begin;  // element of the bucket
  std::int64_t byte;   // of the message
  int count;           // of elements, 0 if the thread has none
};

template <typename T>
DECENT_ELEMENT Group<T> group_of(const CodeLaunch<T>& launch, unsigned block, unsigned thread) {
  int e = 0;
  while (launch.first_block[e + 1] <= block) ++e;
  const CodeEntry<T>& entry = launch.entries[e];
  const std::int64_t at =
      (block - launch.first_block[e]) * kElementsOfBlock + thread * kElementsOfThread;
  const std::int64_t left = entry.numel - at;
  const std::int64_t count = left < 0 ? 0 : left < kElementsOfThread ? left : kElementsOfThread;
  return {&entry, entry.begin + at, entry.byte + at * entry.bits / 8, static_cast<int>(count)};
}

template <int kBits, typename T>
DECENT_ELEMENT void encode_group(const CodeLaunch<T>& launch, const Group<T>& group) {
  std::uint32_t byte = 0;
  for (int i = 0; i < group.count; ++i) {
    const std::uint32_t code =
        modulo_code<kBits>(launch.x[group.begin + i], group.entry->factor, launch.dither);
    const int shift = i * kBits % 8;
    byte |= code << shift;
    if (shift + kBits < 8 && i + 1 < group.count) continue;
    launch.message[group.byte + i * kBits / 8] = static_cast<std::uint8_t>(byte);
    byte = 0;
  }
}

/// Encodes the elements of thread number `thread` of block number `block`.
template <typename T>
DECENT_ELEMENT void encode_thread(const CodeLaunch<T>& launch, unsigned block, unsigned thread) {
  const Group<T> group = group_of(launch, block, thread);
  if (group.entry->bits == 2) return encode_group<2>(launch, group);
  if (group.entry->bits == 4) return encode_group<4>(launch, group);
  encode_group<8>(launch, group);
}

template <int kBits>
DECENT_ELEMENT int difference_at(const std::uint8_t* own, const std::uint8_t* other, int element) {
  const int byte = element * kBits / 8;
  const int shift = element * kBits % 8;
  return modulo_difference<kBits>(static_cast<std::uint8_t>(own[byte] >> shift),
                                  static_cast<std::uint8_t>(other[byte] >> shift));
}

// Returns how many differences to count in `wrapped`.
template <int kBits, typename T>
DECENT_ELEMENT int mix_group(const CodeLaunch<T>& launch, const Group<T>& group) {
  int counted = 0;
  for (int i = 0; i < group.count; ++i) {
    int sum = 0;
    for (int j = 0; j < launch.members; ++j) {
      const std::uint8_t* const other = launch.others + j * launch.stride + group.byte;
      const int difference = difference_at<kBits>(launch.own + group.byte, other, i);
      sum += difference;
      if (kBits == 8 && (difference >= launch.limit || -difference >= launch.limit)) ++counted;
    }
    T& x = launch.x[group.begin + i];
    x = std::fma(group.entry->factor, static_cast<T>(sum), x);
  }
  return counted;
}

/// Mixes the elements of thread number `thread` of block number `block`. Returns how many
/// differences the thread adds to launch.wrapped.
template <typename T>
DECENT_ELEMENT int mix_thread(const CodeLaunch<T>& launch, unsigned block, unsigned thread) {
  const Group<T> group = group_of(launch, block, thread);
  if (group.entry->bits == 2) return mix_group<2>(launch, group);
  if (group.entry->bits == 4) return mix_group<4>(launch, group);
  return mix_group<8>(launch, group);
}

}  // namespace decent::cuda
