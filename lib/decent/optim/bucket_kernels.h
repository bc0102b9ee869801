#pragma once
// The loops over a bucket's elements: loops of this room for memory of the CPU, and kernels of the
// CUDA library for memory of a GPU. A device is a table of functions, made from the list of rules.

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/optim/gradient_norm.h"
#include "decent/optim/rules/all.h"

namespace decent {

/// Updates every slice that has a gradient and mixes the others. `coefficients` has one entry for
/// each slice of the step. On a GPU the work is put on the current stream.
template <class Rule, typename T>
using UpdateFunction = void (*)(const BucketStep& step,
                                std::span<const rules::Coefficients<Rule, T>> coefficients);

/// A device's functions for arrays of T.
template <typename T, class List>
struct TypedKernels;

template <typename T, class... Rules>
struct TypedKernels<T, rules::TypeList<Rules...>> {
  std::tuple<UpdateFunction<Rules, T>...> updates;

  /// x = self * x + other * received.
  void (*mix)(T* x, const T* received, T self, T other, std::int64_t numel);

  /// See gradient_norm.h.
  std::int64_t (*partial_sums)(std::span<const BucketSlice> slices);
  void (*add_up_squares)(std::span<const BucketSlice> slices, double* sums);

  template <class Rule>
  UpdateFunction<Rule, T> update() const {
    return std::get<UpdateFunction<Rule, T>>(updates);
  }

  /// Makes the table of a device that has update<Rule, T>, mix<T>, partial_sums<T> and
  /// add_up_squares<T> as static functions.
  template <class Device>
  static TypedKernels made_of() {
    return {.updates = {update_of<Device, Rules>()...},
            .mix = &Device::template mix<T>,
            .partial_sums = &Device::template partial_sums<T>,
            .add_up_squares = &Device::template add_up_squares<T>};
  }

 private:
  template <class Device, class Rule>  // nvcc does not expand what this returns
  static UpdateFunction<Rule, T> update_of() {
    return &Device::template update<Rule, T>;
  }
};

struct BucketKernels {
  TypedKernels<float, rules::All> float32;
  TypedKernels<double, rules::All> float64;

  /// Calls `work` for pieces that together cover the elements [0, numel).
  void (*in_pieces)(std::int64_t numel, const PieceWork& work);

  /// clipping.run() on the device.
  void (*clip)(const Clipping& clipping);

  template <class Device>
  static BucketKernels made_of() {
    return {.float32 = decltype(float32)::made_of<Device>(),
            .float64 = decltype(float64)::made_of<Device>(),
            .in_pieces = &Device::in_pieces,
            .clip = &Device::clip};
  }

  /// Calls f with the functions for arrays of `scalar`.
  template <typename F>
  auto with(Scalar scalar, const F& f) const {
    return scalar == Scalar::float32 ? f(float32) : f(float64);
  }
};

/// For memory of the CPU, with OpenMP's threads and the widest instruction set of the processor.
const BucketKernels& cpu_kernels();

/// The same for each instruction set of the processor, narrowest first. All give the same bits.
const std::vector<BucketKernels>& cpu_kernels_of_all_instruction_sets();

/// For memory of a GPU, from the CUDA library. Throws UserError if the library cannot be loaded.
const BucketKernels& cuda_kernels();

/// `kernels`, or the CPU's kernels if it is null.
inline const BucketKernels& or_cpu(const BucketKernels* kernels) {
  return kernels != nullptr ? *kernels : cpu_kernels();
}

}  // namespace decent
