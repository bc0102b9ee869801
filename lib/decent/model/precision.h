#pragma once
// The precision in which operators compute.

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace decent {

/// How a GPU computes with float32, for the whole process. On: matrix products, convolutions and
/// RNNs of float32 on a GPU may run in TF32 (10 bits of mantissa), and cuDNN tries its algorithms
/// on the first batch of each shape and keeps the fastest. Off: float32 according to IEEE 754, also
/// for convolutions and RNNs, which PyTorch runs in TF32 by default. Needs no GPU, and changes
/// nothing on the CPU.
void set_fast_math(bool on);

/// Turns fast math off while it lives, and then restores the earlier setting.
class ExactMath {
 public:
  ExactMath();
  ExactMath(const ExactMath&) = delete;
  ExactMath& operator=(const ExactMath&) = delete;
  ~ExactMath();

 private:
  bool matrices_;
  bool convolutions_;
  bool benchmark_;
};

/// Mixed precision: while an Autocast lives, this thread's operators on one kind of device run in a
/// lower precision where that is safe, as under torch.autocast.
class Autocast {
 public:
  /// at::kBFloat16 or at::kHalf.
  Autocast(at::DeviceType device, at::ScalarType dtype);
  /// Drops the cast weights, because the next step has new ones.
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType last_dtype_;
};

}  // namespace decent
