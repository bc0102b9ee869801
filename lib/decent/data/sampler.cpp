#include "decent/data/sampler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>

#include "decent/core/error.h"
#include "decent/data/permutation.h"

namespace decent {
namespace {

// A*N*B; the largest number where that overflows, which is more than any data set has.
std::int64_t samples_of_update(const BatchPlan& plan) {
  std::int64_t samples = plan.batch_size;
  if (__builtin_mul_overflow(samples, static_cast<std::int64_t>(plan.workers), &samples) ||
      __builtin_mul_overflow(samples, plan.accumulation, &samples)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return samples;
}

}  // namespace

Sampler::Sampler(const BatchPlan& plan) : plan_(plan), update_samples_(samples_of_update(plan)) {
  assert(plan.batch_size >= 1 && plan.workers >= 1 && plan.accumulation >= 1);
  assert(plan.rank >= 0 && plan.rank < plan.workers);
  if (plan.samples < update_samples_) {
    throw UserError("the training data has " + std::to_string(plan.samples) +
                    " samples, but one update takes " + std::to_string(update_samples_) +
                    ": batch_size " + std::to_string(plan.batch_size) + " x " +
                    std::to_string(plan.workers) + " workers x grad_accumulation " +
                    std::to_string(plan.accumulation) +
                    "\nlower data.batch_size or train.grad_accumulation, or use fewer workers");
  }
}

std::vector<std::int64_t> Sampler::micro_batch(std::int64_t update, std::int64_t a) const {
  assert(update >= 0);
  return micro_batch_at(update / updates_per_epoch(),
                        update % updates_per_epoch() * update_samples_, a);
}

std::vector<std::int64_t> Sampler::micro_batch_at(std::int64_t epoch, std::int64_t consumed,
                                                  std::int64_t a) const {
  assert(epoch >= 0 && consumed >= 0 && consumed <= plan_.samples - update_samples_);
  assert(a >= 0 && a < plan_.accumulation);
  const KeyedPermutation shuffled(static_cast<std::uint64_t>(plan_.samples), plan_.seed,
                                  static_cast<std::uint64_t>(epoch));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(plan_.batch_size));
  std::int64_t position = consumed + a * plan_.workers * plan_.batch_size + plan_.rank;
  for (std::int64_t& index : indices) {
    index = plan_.shuffle
                ? static_cast<std::int64_t>(shuffled(static_cast<std::uint64_t>(position)))
                : position;
    position += plan_.workers;
  }
  return indices;
}

std::int64_t evaluation_size(std::int64_t samples, int workers, int rank) {
  assert(samples >= 0 && rank >= 0 && rank < workers);
  return samples / workers + (rank < samples % workers ? 1 : 0);
}

std::vector<std::int64_t> evaluation_indices(std::int64_t samples, int workers, int rank,
                                             std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count >= 0);
  const std::int64_t left =
      std::max<std::int64_t>(0, evaluation_size(samples, workers, rank) - first);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = first; i < first + std::min(count, left); ++i) {
    indices.push_back(rank + i * workers);
  }
  return indices;
}

}  // namespace decent
