#pragma once
// How a GPU computes with float32, for the whole process.

namespace decent {

/// On: matrix products, convolutions and RNNs of float32 on a GPU may run in TF32 (10 bits of
/// mantissa), and cuDNN tries its algorithms on the first batch of each shape and keeps the
/// fastest. Off: float32 according to IEEE 754, also for convolutions and RNNs, which PyTorch runs
/// in TF32 by default. Needs no GPU, and changes nothing on the CPU.
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

}  // namespace decent
