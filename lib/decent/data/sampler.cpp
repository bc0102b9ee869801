#include "decent/data/sampler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/permutation.h"
#include "decent/data/token_batches.h"
#include "decent/data/weighted_order.h"

namespace decent {
namespace {

// More than any data set has.
constexpr std::int64_t kTooMany = std::numeric_limits<std::int64_t>::max();

std::int64_t epoch_samples(const BatchPlan& plan) {
  if (plan.token_batches) return plan.token_batches->size();
  return plan.weighted ? plan.weighted->epoch_size() : plan.samples;
}

std::vector<std::int64_t> sizes_of(const BatchPlan& plan) {
  const auto workers = static_cast<std::size_t>(plan.member.size());
  if (plan.token_batches) return std::vector<std::int64_t>(workers, 1);
  assert(plan.batch_sizes.empty() || plan.batch_sizes.size() == workers);
  return plan.batch_sizes.empty() ? std::vector<std::int64_t>(workers, plan.batch_size)
                                  : plan.batch_sizes;
}

// kTooMany if that overflows, as in the next one.
std::int64_t sum_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    assert(size >= 1);
    if (__builtin_add_overflow(sum, size, &sum)) return kTooMany;
  }
  return sum;
}

std::int64_t product_of(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMany : product;
}

// In a micro-batch, the positions of the samples of the worker at `place`: before its sample of
// round j, a place q has taken one in each of the rounds before, and in this one if q < place.
std::vector<std::int64_t> dealt_to(int place, const std::vector<std::int64_t>& sizes) {
  const auto own = static_cast<std::size_t>(place);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(sizes[own]));
  for (std::size_t j = 0; j < positions.size(); ++j) {
    for (std::size_t q = 0; q < sizes.size(); ++q)
      positions[j] += std::min(sizes[q], static_cast<std::int64_t>(q < own ? j + 1 : j));
  }
  return positions;
}

// Which batches make up the `share` samples of a micro-batch on all workers.
std::string batches_text(const std::vector<std::int64_t>& sizes, std::int64_t share,
                         bool of_tokens) {
  const std::string workers = counted(std::ssize(sizes), "worker");
  if (of_tokens) return "one for each of " + workers;
  const auto of_first = std::count(sizes.begin(), sizes.end(), sizes.front());
  if (of_first == std::ssize(sizes))
    return "batch_size " + std::to_string(sizes.front()) + " x " + workers;
  return "batch sizes of " + workers + ", " + std::to_string(share) + " together,";
}

}  // namespace

Sampler::Sampler(const BatchPlan& plan)
    : plan_(plan),
      epoch_samples_(epoch_samples(plan)),
      batch_sizes_(sizes_of(plan)),
      share_(sum_of(batch_sizes_)),
      update_samples_(product_of(share_, plan.accumulation)) {
  assert(plan.accumulation >= 1);
  const int place = plan.member.place();
  if (epoch_samples_ < update_samples_) {
    throw UserError("the training data has " + counted_samples(epoch_samples_) +
                    ", but one update takes " + std::to_string(update_samples_) + ": " +
                    batches_text(batch_sizes_, share_, plan.token_batches != nullptr) +
                    " x grad_accumulation " + std::to_string(plan.accumulation) + "\n" +
                    plan.remedy);
  }
  if (plan.first_position.consumed > epoch_samples_) {
    throw UserError("the training data has " + counted_samples(epoch_samples_) + ", but " +
                    std::to_string(plan.first_position.consumed) +
                    " of the epoch to go on with are taken already");
  }
  if (updates_left(plan_.first_position) == 0) {
    plan_.first_position = {plan_.first_position.epoch + 1, 0};
  }
  dealt_ = dealt_to(place, batch_sizes_);
}

std::string Sampler::counted_samples(std::int64_t count) const {
  return plan_.token_batches ? counted(count, "batch", "batches") : counted(count, "sample");
}

double Sampler::mean_update_samples() const {
  const auto dealt = static_cast<double>(update_samples_);
  return plan_.token_batches ? dealt * plan_.token_batches->mean_samples() : dealt;
}

// The number of updates left in the epoch of `position`.
std::int64_t Sampler::updates_left(DataPosition position) const {
  return (epoch_samples_ - position.consumed) / update_samples_;
}

DataPosition Sampler::position(std::int64_t update) const {
  assert(update >= plan_.first_update);
  const std::int64_t done = update - plan_.first_update;
  const DataPosition& first = plan_.first_position;
  const std::int64_t left = updates_left(first);
  if (done < left) return {first.epoch, first.consumed + done * update_samples_};
  const std::int64_t later = done - left;
  return {first.epoch + 1 + later / updates_per_epoch(),
          later % updates_per_epoch() * update_samples_};
}

// A quotient of whole numbers, so that it is the same whatever first_update is.
double Sampler::epochs_done(std::int64_t update) const {
  const DataPosition place = position(update);
  const auto taken = static_cast<double>(updates_per_epoch() * update_samples_);  // of an epoch
  const double samples = static_cast<double>(place.epoch) * taken;
  return (samples + static_cast<double>(place.consumed)) / taken;
}

std::int64_t Sampler::updates_until(std::int64_t epoch) const {
  const DataPosition& first = plan_.first_position;
  if (epoch <= first.epoch) return plan_.first_update;
  std::int64_t updates = 0;
  if (__builtin_mul_overflow(epoch - first.epoch - 1, updates_per_epoch(), &updates) ||
      __builtin_add_overflow(updates, plan_.first_update + updates_left(first), &updates)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return updates;
}

double Sampler::weight() const {
  const auto workers = static_cast<double>(batch_sizes_.size());
  return workers * static_cast<double>(dealt_.size()) / static_cast<double>(share_);
}

std::vector<std::int64_t> Sampler::micro_batch(std::int64_t update, std::int64_t a) const {
  assert(a >= 0 && a < plan_.accumulation);
  const DataPosition begin = position(update);
  std::vector<std::int64_t> indices = dealt_;
  for (std::int64_t& index : indices) index += begin.consumed + a * share_;
  if (plan_.weighted) {
    plan_.weighted->draw(begin.epoch, indices);
  } else if (plan_.shuffle) {
    shuffle(begin.epoch, indices);
  }
  if (!plan_.token_batches) return indices;
  const std::span<const std::int64_t> batch = plan_.token_batches->batch(indices.front());
  return {batch.begin(), batch.end()};
}

// Puts the sample there in the place of each position of the epoch.
void Sampler::shuffle(std::int64_t epoch, std::span<std::int64_t> positions) const {
  const KeyedPermutation shuffled(static_cast<std::uint64_t>(epoch_samples_), plan_.seed,
                                  static_cast<std::uint64_t>(epoch));
  for (std::int64_t& position : positions)
    position = static_cast<std::int64_t>(shuffled(static_cast<std::uint64_t>(position)));
}

std::int64_t evaluation_size(std::int64_t samples, const Member& member) {
  assert(samples >= 0);
  return samples / member.size() + (member.place() < samples % member.size() ? 1 : 0);
}

std::vector<std::int64_t> evaluation_indices(std::int64_t samples, const Member& member,
                                             std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count >= 0);
  const std::int64_t left = std::max<std::int64_t>(0, evaluation_size(samples, member) - first);
  const int place = member.place();
  std::vector<std::int64_t> indices;
  for (std::int64_t i = first; i < first + std::min(count, left); ++i)
    indices.push_back(place + i * member.size());
  return indices;
}

}  // namespace decent
