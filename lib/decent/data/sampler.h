#pragma once
// Which samples a worker reads, when. Pure functions of the plan: no state, so that any update of a
// run can be asked for, in any order, from any thread; resuming needs nothing but the number of the
// update.

#include <cstdint>
#include <string>
#include <vector>

#include "decent/core/membership.h"

namespace decent {

/// A place in the training data: the next update takes its samples from `epoch`, after `consumed`
/// samples of it.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t consumed = 0;
  bool operator==(const DataPosition&) const = default;
};

/// How a training set is dealt out. All counts are >= 1; `rank` is a member of `workers`.
struct BatchPlan {
  std::int64_t samples = 0;          // in the training set
  std::int64_t batch_size = 0;       // B: per worker and micro-batch
  Membership workers = everyone(1);  // N of them
  int rank = 0;                      // of this worker, whose place among them is p
  std::int64_t accumulation = 1;     // A: micro-batches per update
  bool shuffle = true;
  std::uint64_t seed = 0;
  // A run that goes on: so many updates were done before, and they ended here. Their number of
  // workers need not have been the same.
  std::int64_t first_update = 0;
  DataPosition first_position = {};
  // What the user can do where the set is too small for one update.
  std::string remedy = "take a smaller batch size or accumulation, or fewer workers";
};

/// The order of training. Epoch e is a permutation of the samples that (seed, e) alone determine
/// (permutation.h), or the identity without shuffle. Each update takes the next A*N*B of its epoch,
/// micro-batch a the a-th N*B of them, the worker at place p every N-th of those from the p-th on.
/// What is left at the end of an epoch, fewer than A*N*B, is dropped.
class Sampler {
 public:
  /// Throws UserError where the set has fewer than A*N*B samples, or fewer than first_position says
  /// were taken.
  explicit Sampler(const BatchPlan& plan);

  /// floor(samples / (A*N*B)), >= 1.
  std::int64_t updates_per_epoch() const { return plan_.samples / update_samples_; }
  /// A*N*B: what one update takes on all workers together.
  std::int64_t update_samples() const { return update_samples_; }

  /// Where update `update` takes its samples, counted from 0 over the whole run; not before
  /// first_update. Where the rest of an epoch is too small, the start of the next.
  DataPosition position(std::int64_t update) const;

  /// Epochs done before update `update`, with a fraction: updates over updates per epoch.
  double epochs_done(std::int64_t update) const;

  /// The number of updates of the whole run until the start of epoch `epoch`; first_update where
  /// that has passed. The largest number where it cannot be counted.
  std::int64_t updates_until(std::int64_t epoch) const;

  /// The B samples of micro-batch `a` in [0, A) of update `update` for this worker.
  std::vector<std::int64_t> micro_batch(std::int64_t update, std::int64_t a) const;

 private:
  std::int64_t updates_left(DataPosition position) const;

  BatchPlan plan_;
  std::int64_t place_;  // p
  std::int64_t update_samples_;
};

/// How many of `samples` worker `rank` of `workers` evaluates: every N-th from the p-th on, where N
/// is their number and p its place among them. The parts of all workers cover each sample exactly
/// once; a worker's part may be empty.
std::int64_t evaluation_size(std::int64_t samples, const Membership& workers, int rank);

/// Samples first, first + 1, .. of that part: `count` of them, fewer where the part ends.
std::vector<std::int64_t> evaluation_indices(std::int64_t samples, const Membership& workers,
                                             int rank, std::int64_t first, std::int64_t count);

}  // namespace decent
