#pragma once
// The update of one flat bucket: mixing with what the neighbours sent and the optimizer's step, in
// one pass over memory. Plain pointers, no torch: the same interface serves the CPU's loops and the
// kernels of other devices (bucket_kernels.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/optim/update_names.h"

namespace decent {

struct BucketKernels;

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

/// What make_update's optimizers take. Each looks at its own (update_takes), and has its own
/// default for what is not set: see its file in rules/, where its formula is.
struct UpdateOptions {
  std::optional<double> momentum = {};
  std::optional<bool> nesterov = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> eps = {};
  std::optional<std::int64_t> accum_iter = {};
  std::optional<double> alpha = {};
};

/// One of update_names(). Throws UserError for another name, and for options out of range:
/// momentum, alpha and betas must be in [0, 1), eps >= 0, accum_iter >= 1, and nesterov needs a
/// momentum.
std::unique_ptr<BucketUpdate> make_update(std::string_view name, const UpdateOptions& options = {});

}  // namespace decent
