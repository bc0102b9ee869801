#pragma once
// Encoding a whole message, and mixing with the messages of others: loops of this room for memory
// of the CPU, kernels of the CUDA library for memory of a GPU.

#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "decent/codec/modulo_layout.h"
#include "decent/codec/slices.h"

namespace decent {

/// The codes of a bucket `x`.
template <typename T>
struct ModuloEncoding {
  const T* x = nullptr;                   // the bucket
  std::span<const CodeSegment> segments;  // in the order of elements
  T dither = 0;                           // v
  std::uint8_t* message = nullptr;        // [bytes of the layout]

  /// 1 / s'.
  T factor(int exponent) const { return std::ldexp(T(1), -exponent); }
};

/// x_i += weight s' sum_j d_ij on the elements of the segments.
template <typename T>
struct ModuloMixing {
  T* x = nullptr;                         // the bucket
  std::span<const CodeSegment> segments;  // in the order of elements
  const std::uint8_t* own = nullptr;      // this worker's message
  // The messages of the other members; on a GPU at equal distances in memory.
  std::span<const std::uint8_t* const> others = {};
  double weight = 0;                // gamma W_ij
  int bits = 2;                     // of the format
  std::int64_t* wrapped = nullptr;  // null, or in x's memory: is increased by the number of d_ij of
                                    // 8 bits that the format's bits would have got wrong

  /// weight s', rounded once.
  T factor(int exponent) const { return static_cast<T>(std::ldexp(weight, exponent)); }
  /// The magnitude from which on a difference of 8 bits is counted in `wrapped`.
  std::int32_t limit() const { return 1 << (bits - 1); }
};

/// A device's functions for buckets of T. They work on elements [begin, end) of the bucket, where
/// begin is a multiple of 32 from the start of a segment or anywhere before it. On the CPU, other
/// threads may call them for other elements at the same time. On a GPU the range must be the whole
/// bucket, and the work is put on the current stream.
template <typename T>
struct TypedModuloKernels {
  void (*encode)(const ModuloEncoding<T>& encoding, Range range);
  void (*mix)(const ModuloMixing<T>& mixing, Range range);
};

struct ModuloKernels {
  TypedModuloKernels<float> float32;
  TypedModuloKernels<double> float64;

  /// For buckets of T, float or double.
  template <typename T>
  const TypedModuloKernels<T>& of() const {
    if constexpr (std::is_same_v<T, double>) {
      return float64;
    } else {
      return float32;
    }
  }

  template <class Device>
  static ModuloKernels made_of() {
    return {
        .float32 = {.encode = &Device::template encode<float>, .mix = &Device::template mix<float>},
        .float64 = {.encode = &Device::template encode<double>,
                    .mix = &Device::template mix<double>}};
  }
};

/// For memory of the CPU, with the widest instruction set of the processor.
const ModuloKernels& cpu_modulo_kernels();

/// The same for each instruction set of the processor, narrowest first. All give the same bits.
const std::vector<ModuloKernels>& cpu_modulo_kernels_of_all_instruction_sets();

/// For memory of a GPU, from the CUDA library. Throws UserError if the library cannot be loaded.
const ModuloKernels& cuda_modulo_kernels();

}  // namespace decent
