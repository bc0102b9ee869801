#pragma once
// Which samples a worker reads in which update. These are pure functions of the plan: callers may
// ask for any update of a run, in any order and from any thread, and resuming needs only the number
// of the update.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decent/core/membership.h"

namespace decent {

class TokenBatches;
class WeightedOrder;

/// A position in the training data: the next update takes its samples from epoch number `epoch`
/// (counted from 0), after `consumed` samples of it (with token_batches: batches).
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t consumed = 0;
  bool operator==(const DataPosition&) const = default;
};

/// How a training set is divided among workers. All counts are >= 1.
struct BatchPlan {
  std::int64_t samples = 0;       // of the training set
  std::int64_t batch_size = 0;    // B: per worker and micro-batch
  Member member = {};             // this worker, at place p of N
  std::int64_t accumulation = 1;  // A: micro-batches per update
  bool shuffle = true;
  std::uint64_t seed = 0;
  // For a resumed run: the number of updates done before, and the position after them. The number
  // of workers may have been different then.
  std::int64_t first_update = 0;
  DataPosition first_position = {};
  // For the message if the set is too small for one update: what the user can do.
  std::string remedy = "take a smaller batch size or accumulation, or fewer workers";
  // Draws the samples of an epoch instead of shuffle and seed; null: each sample comes once.
  std::shared_ptr<const WeightedOrder> weighted = nullptr;
  // By place, if workers differ: B_0, B_1, .., each >= 1, in place of batch_size.
  std::vector<std::int64_t> batch_sizes = {};
  // The batches that are dealt out in place of samples, each of them to be a micro-batch of one
  // worker, so that no batch size counts; null: samples are dealt out.
  std::shared_ptr<const TokenBatches> token_batches = nullptr;
};

/// The order of training. Epoch e is a permutation of the samples that only (seed, e) determine
/// (permutation.h), or the identity without shuffle; or it is drawn by weights (weighted_order.h).
/// Each update takes the next A*S samples of its epoch, where S is the sum of all B_p, and
/// micro-batch a takes the a-th S of them. These are dealt out in rounds, in the order of places,
/// until everyone has a batch: in round j, counted from 0, each worker with B_p > j takes one. With
/// equal sizes S = N*B, and the worker at place p takes every N-th sample, beginning with the p-th.
/// The rest of an epoch, fewer than A*S samples, is dropped. With token_batches all of this holds
/// for batches in place of samples, and so do positions in the data.
class Sampler {
 public:
  /// Throws UserError if an epoch has fewer than A*S samples, or fewer than
  /// first_position.consumed.
  explicit Sampler(const BatchPlan& plan);

  /// floor(E / (A*S)), >= 1, where E is the number of samples that an epoch deals out.
  std::int64_t updates_per_epoch() const { return epoch_samples_ / update_samples_; }
  /// A*S: the samples of one update on all workers together.
  std::int64_t update_samples() const { return update_samples_; }
  /// The same in samples if these are batches: the average over all batches.
  double mean_update_samples() const;
  /// The samples at the end of an epoch that no update takes.
  std::int64_t left_out() const { return epoch_samples_ % update_samples_; }
  /// "8 samples", or "8 batches" if these are what is dealt out.
  std::string counted_samples(std::int64_t count) const;

  /// The position from which update `update` takes its samples. Updates are counted from 0 over the
  /// whole run, and `update` is >= first_update. If the rest of an epoch is too small, it is the
  /// start of the next epoch.
  DataPosition position(std::int64_t update) const;

  /// Epochs done before update `update`, with a fraction: updates over updates per epoch.
  double epochs_done(std::int64_t update) const;

  /// The number of updates of the whole run until the start of epoch `epoch`; first_update if that
  /// has passed; the largest int64 if the number overflows.
  std::int64_t updates_until(std::int64_t epoch) const;

  /// B_p of all workers, by place.
  const std::vector<std::int64_t>& batch_sizes() const { return batch_sizes_; }
  /// N * B_p / S: what this worker's mean counts in a mean over workers that is to be one over
  /// samples. Exactly 1 with equal sizes.
  double weight() const;

  /// The numbers of the B_p samples, or those of the batch, of micro-batch `a` in [0, A) of update
  /// `update` for this worker.
  std::vector<std::int64_t> micro_batch(std::int64_t update, std::int64_t a) const;

 private:
  std::int64_t updates_left(DataPosition position) const;
  void shuffle(std::int64_t epoch, std::span<std::int64_t> positions) const;

  BatchPlan plan_;
  std::int64_t epoch_samples_;             // E
  std::vector<std::int64_t> batch_sizes_;  // by place
  std::int64_t share_;                     // S
  std::int64_t update_samples_;
  std::vector<std::int64_t> dealt_;  // the positions of this worker's samples in a micro-batch
};

/// How many of `samples` samples the worker at place p of N evaluates: every N-th, beginning with
/// the p-th. The parts of all workers cover each sample exactly once; a worker's part may be empty.
std::int64_t evaluation_size(std::int64_t samples, const Member& member);

/// The numbers of the samples first, first + 1, .. of that part: `count` of them, fewer at its end.
std::vector<std::int64_t> evaluation_indices(std::int64_t samples, const Member& member,
                                             std::int64_t first, std::int64_t count);

}  // namespace decent
