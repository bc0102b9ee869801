#pragma once
// Where a bucket's elements are worked on: the loops of this room for memory of the CPU, kernels of
// the CUDA library for a GPU's. Which formula and with what coefficients is BucketUpdate's
// business.

#include <cstdint>
#include <span>

#include "decent/optim/bucket_update.h"
#include "decent/optim/coefficients.h"

namespace decent {

/// `coefficients` has one for each slice of the step; slices without a gradient are mixed only. On
/// a device the work is put on its current stream.
class BucketKernels {
 public:
  virtual ~BucketKernels() = default;

  virtual void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing) const = 0;

  template <typename T>
  using All = std::span<const T>;
  virtual void run(const BucketStep& step, All<kernels::Sgd<float>> coefficients) const = 0;
  virtual void run(const BucketStep& step, All<kernels::Sgd<double>> coefficients) const = 0;
  virtual void run(const BucketStep& step, All<kernels::Adam<float>> coefficients) const = 0;
  virtual void run(const BucketStep& step, All<kernels::Adam<double>> coefficients) const = 0;
  virtual void run(const BucketStep& step, All<kernels::AccumAdam<float>> coefficients) const = 0;
  virtual void run(const BucketStep& step, All<kernels::AccumAdam<double>> coefficients) const = 0;

  /// See gradient_norm.h. Waits for the result.
  virtual double sum_of_squares(std::span<const BucketSlice> slices, Scalar scalar) const = 0;
};

/// Kernels that are templates of Derived: update<Coefficients>(step, coefficients),
/// mix_as<T>(x, received, numel, mixing), sum_as<T>(slices).
template <typename Derived>
class TypedKernels : public BucketKernels {
  template <typename T>
  using All = BucketKernels::All<T>;

 public:
  void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing) const override {
    if (scalar == Scalar::float32) {
      mix_typed<float>(x, numel, mixing);
    } else {
      mix_typed<double>(x, numel, mixing);
    }
  }

  void run(const BucketStep& s, All<kernels::Sgd<float>> c) const override { self().update(s, c); }
  void run(const BucketStep& s, All<kernels::Sgd<double>> c) const override { self().update(s, c); }
  void run(const BucketStep& s, All<kernels::Adam<float>> c) const override { self().update(s, c); }
  void run(const BucketStep& s, All<kernels::Adam<double>> c) const override {
    self().update(s, c);
  }
  void run(const BucketStep& s, All<kernels::AccumAdam<float>> c) const override {
    self().update(s, c);
  }
  void run(const BucketStep& s, All<kernels::AccumAdam<double>> c) const override {
    self().update(s, c);
  }

  double sum_of_squares(std::span<const BucketSlice> slices, Scalar scalar) const override {
    return scalar == Scalar::float32 ? self().template sum_as<float>(slices)
                                     : self().template sum_as<double>(slices);
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }

  template <typename T>
  void mix_typed(void* x, std::int64_t numel, const Mixing& mixing) const {
    self().mix_as(static_cast<T*>(x), static_cast<const T*>(mixing.received), numel, mixing);
  }
};

/// For memory of the CPU; OpenMP's threads.
const BucketKernels& cpu_kernels();

/// For memory of a GPU, out of the CUDA library. Throws UserError where that cannot be had.
const BucketKernels& cuda_kernels();

/// `kernels`, or the CPU's where that is null.
inline const BucketKernels& or_cpu(const BucketKernels* kernels) {
  return kernels != nullptr ? *kernels : cpu_kernels();
}

}  // namespace decent
