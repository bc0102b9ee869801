#pragma once
// The update of one flat bucket: mixing with what the neighbours sent and the optimizer's step, in
// one pass over memory. Plain pointers, no torch: the same interface serves the CPU's loops and the
// kernels of other devices (bucket_kernels.h).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

class BucketKernels;

enum class Scalar { float32, float64 };

/// z = self * x + other * received, elementwise. received == nullptr: z = x.
struct Mixing {
  double self = 1.0;
  double other = 0.0;
  const void* received = nullptr;  // as long as the bucket
};

/// One parameter inside a bucket.
struct BucketSlice {
  std::int64_t offset = 0;  // elements from the start of the bucket
  std::int64_t numel = 0;
  const void* grad = nullptr;  // numel elements in the bucket's memory order; nullptr: mix only
  double weight_decay = 0.0;
  double lr_scale = 1.0;
  std::int64_t updates = 0;  // of this parameter, this one included (Adam's bias correction)
};

/// A bucket during one step: `x`, what was received and every state are flat arrays of `numel`
/// elements and the same layout, zero between parameters.
struct BucketStep {
  void* x = nullptr;
  std::int64_t numel = 0;
  std::span<void* const> states;
  Scalar scalar = Scalar::float32;
  Mixing mixing;
  std::span<const BucketSlice> slices;
  double lr = 0.0;
  double grad_scale = 1.0;                 // of every gradient before anything else: clipping
  const BucketKernels* kernels = nullptr;  // of the device that all of this is on; null: the CPU
};

/// An optimizer as a function of one bucket; stateless, so one object serves all buckets.
/// The result does not depend on the number of threads. Whoever writes another one mixes first (see
/// mix.h), then updates each slice that has a gradient.
class BucketUpdate {
 public:
  virtual ~BucketUpdate() = default;
  /// Names of the flat state arrays, zero at the start, e.g. {"exp_avg", "exp_avg_sq"}.
  virtual const std::vector<std::string>& state_names() const = 0;
  virtual void apply(const BucketStep& step) const = 0;
};

/// torch.optim.SGD with dampening 0. Throws UserError where momentum is not in [0, 1), or nesterov
/// has none.
struct SgdOptions {
  double momentum = 0.0;
  bool nesterov = false;
};
std::unique_ptr<BucketUpdate> make_sgd(const SgdOptions& options);

/// torch.optim.Adam, or torch.optim.AdamW where `decoupled_weight_decay`. Throws UserError for
/// betas outside [0, 1) and a negative eps.
struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool decoupled_weight_decay = false;
};
std::unique_ptr<BucketUpdate> make_adam(const AdamOptions& options);

/// decent-dp's AccumAdam and AccumAdamW: Adam whose moments move once in `accum_iter` updates K, by
/// the mean gradient of those, while every update steps with its own gradient on top of them:
///
///     x -= lr * wd * x (decoupled), or g += wd * x
///     a += g / K;   m' = m + (1-b1) g;   v' = v + (1-b2) g^2
///     n = ceil(s / K);   x -= lr / (1-b1^n) * m' / (sqrt(v') / sqrt(1-b2^n) + eps)
///     K divides s:  m = b1 (m + (1-b1) a),  v = b2 (v + (1-b2) a^2),  a = 0
struct AccumAdamOptions {
  AdamOptions adam = {};
  std::int64_t accum_iter = 4;  // K >= 1
};
std::unique_ptr<BucketUpdate> make_accum_adam(const AccumAdamOptions& options);

/// What make_update's optimizers take; each looks at its own.
struct UpdateOptions {
  double momentum = 0.0;  // sgd
  bool nesterov = false;  // sgd
  double beta1 = 0.9;     // all but sgd, as the next two
  double beta2 = 0.999;
  double eps = 1e-8;
  std::int64_t accum_iter = 4;  // accum_adam, accum_adamw
};

/// sgd, adam, adamw, accum_adam or accum_adamw. Throws UserError for another name, and as the
/// functions above do for options out of range.
std::unique_ptr<BucketUpdate> make_update(std::string_view name, const UpdateOptions& options = {});
std::span<const std::string> update_names();

}  // namespace decent
