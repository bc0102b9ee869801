#pragma once
// The update of one flat bucket: mixing with the weights that the neighbours sent and the
// optimizer's step, in one pass over memory. It uses plain pointers and no torch, so that the
// CPU's loops and the kernels of other devices have the same interface (bucket_kernels.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
#include "decent/optim/matrix.h"
#include "decent/optim/update_names.h"

namespace decent {

struct BucketKernels;

enum class Scalar { float32, float64 };

/// Work on elements [begin, end) of a bucket, done during an update's pass, which takes a bucket in
/// pieces that stay in the cache. On the CPU several threads call it at the same time for different
/// pieces, and `begin` is a multiple of 16 elements from the bucket's start. On a GPU it is called
/// once, for the whole bucket, and puts its work on the current stream.
using PieceWork = std::function<void(std::int64_t begin, std::int64_t end)>;

/// z = self * x + other * received, elementwise; or `in_place` turns x into z; or z = x if neither
/// is set.
struct Mixing {
  double self = 1.0;
  double other = 0.0;
  const void* received = nullptr;  // [numel] of the bucket, of its scalar type
  PieceWork in_place = nullptr;    // replaces x by z; `received` is null

  /// Whether z is not simply x.
  bool mixes() const { return received != nullptr || in_place != nullptr; }
};

/// One parameter inside a bucket.
struct BucketSlice {
  std::int64_t offset = 0;  // elements from the start of the bucket
  std::int64_t numel = 0;
  const void* grad = nullptr;  // [numel] in the bucket's memory order; null: only mix
  double weight_decay = 0.0;
  double lr_scale = 1.0;
  std::int64_t updates = 0;  // of this parameter, this one included (for Adam's bias correction)
  Matrix matrix = {};        // its shape, if it may be treated as a matrix
};

struct BucketStep;

/// Computes the direction of a matrix's step from its gradient, as `step` scales it, and its
/// momentum, which changes unless the scale is NaN. This room leaves it to its callers, as it has
/// no products of matrices.
using MatrixWork =
    std::function<void(const BucketStep& step, const MatrixStep& how, const MatrixArrays& of)>;

/// Computes the direction of a parameter's step, in the bucket's one state array, from its weights
/// and its gradient, as `step` scales it, and from what it remembers of it, which changes unless
/// the scale is NaN. It is left to callers for the same reason.
using FactoredWork =
    std::function<void(const BucketStep& step, const BucketSlice& slice, const FactoredStep& how)>;

/// A bucket during one step. `x`, the received weights and every state are flat arrays of `numel`
/// elements with the same layout, and zero between parameters.
struct BucketStep {
  void* x = nullptr;
  std::int64_t numel = 0;
  std::span<void* const> states;
  Scalar scalar = Scalar::float32;
  Mixing mixing;
  std::span<const BucketSlice> slices;
  double lr = 0.0;
  double grad_scale = 1.0;  // factor of every gradient: clipping, loss scale
  /// A further factor, in the arrays' memory; null: 1. If it is NaN, nothing is updated, and only
  /// `mixing.in_place` still mixes.
  const double* device_scale = nullptr;
  /// Is called for every piece of the bucket, padding included, after it has been written. If an
  /// update ignores it, the exchange needs a pass of its own.
  PieceWork written = nullptr;
  MatrixWork matrix_work = nullptr;        // an update of matrices requires it
  FactoredWork factored_work = nullptr;    // an update that is_factored() requires it
  const BucketKernels* kernels = nullptr;  // of the arrays' device; null: the CPU
};

/// An optimizer as a function of one bucket, with a BucketStep as its input. It is stateless, so
/// one object serves all buckets, and its result does not depend on the number of threads. An
/// implementation mixes first (see mix()) and then updates each slice that has a gradient. The
/// slices of a step are in ascending order.
class BucketUpdate {
 public:
  virtual ~BucketUpdate() = default;
  /// Names of the flat state arrays, zero at the start, e.g. {"exp_avg", "exp_avg_sq"}.
  virtual const std::vector<std::string>& state_names() const = 0;
  virtual void apply(const BucketStep& step) const = 0;
  /// Whether no gradient, however large, moves a weight by more than a few learning rates in one
  /// step. Modulo exchanges need this.
  virtual bool steps_bounded_by_lr() const { return false; }
  /// Whether BucketStep::factored_work keeps the states, each smaller than its parameter, and the
  /// array of state_names() only lasts for a step.
  virtual bool is_factored() const { return false; }
  /// Whether a slice with a gradient must be a whole parameter.
  virtual bool needs_whole_parameters() const { return false; }
  /// How large the steps of a parameter with this shape are, in those of other parameters.
  virtual double step_scale(const Matrix& /*matrix*/) const { return 1; }
};

/// Makes the optimizer `name`, one of update_names(). Options that are not given have the
/// optimizer's own defaults; those that only other optimizers take are not looked at. Its file in
/// rules/ has the options, with their ranges, and its formula. Throws UserError for an unknown
/// name, for an option that no optimizer has, and for values of its own options that have another
/// type or are out of range.
std::unique_ptr<BucketUpdate> make_update(std::string_view name, const Options& options = {});

/// Mixing without an update, for optimizers outside this library. Replaces x by z (see Mixing) over
/// `numel` elements, including padding. The arrays must not overlap, and x must be the bucket for
/// which the mixing was made. `kernels` belong to the arrays' device (null: the CPU), as in
/// BucketStep. The result does not depend on the number of threads.
void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing,
         const BucketKernels* kernels = nullptr);

}  // namespace decent
