#include "decent/data/token_batches.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

#include "decent/data/permutation.h"

namespace decent {
namespace {

// A number of an epoch that neither the order of training nor a holdout (subset.cpp) has.
constexpr std::uint64_t kBatchingEpoch = std::numeric_limits<std::uint64_t>::max() - 1;

std::vector<std::int64_t> order_by_length(std::span<const std::int32_t> lengths,
                                          std::uint64_t seed) {
  const KeyedPermutation shuffled(lengths.size(), seed, kBatchingEpoch);
  std::vector<std::int64_t> order(lengths.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(shuffled(i));
  std::ranges::stable_sort(
      order, {}, [&](std::int64_t sample) { return lengths[static_cast<std::size_t>(sample)]; });
  return order;
}

std::vector<std::int64_t> order_as_they_come(std::size_t samples) {
  std::vector<std::int64_t> order(samples);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

}  // namespace

TokenBatches::TokenBatches(std::span<const std::int32_t> lengths, std::int64_t tokens,
                           std::optional<std::uint64_t> seed)
    : order_(seed ? order_by_length(lengths, *seed) : order_as_they_come(lengths.size())) {
  std::int64_t begin = 0;
  std::int64_t longest = 0;         // of the batch that is being filled
  std::int64_t longest_of_all = 0;  // so far
  for (std::int64_t place = 0; place < std::ssize(order_); ++place) {
    const auto sample = static_cast<std::size_t>(order_[static_cast<std::size_t>(place)]);
    assert(lengths[sample] >= 1 && lengths[sample] <= tokens);
    longest = std::max<std::int64_t>(longest, lengths[sample]);
    if ((place + 1 - begin) * longest > tokens) {
      ends_.push_back(place);
      begin = place;
      longest = lengths[sample];
    }
    if (longest <= longest_of_all) continue;
    longest_of_all = longest;
    longest_ = size();
  }
  if (!order_.empty()) ends_.push_back(std::ssize(order_));
}

std::span<const std::int64_t> TokenBatches::batch(std::int64_t number) const {
  const auto place = static_cast<std::size_t>(number);
  const std::int64_t begin = number == 0 ? 0 : ends_[place - 1];
  return std::span(order_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(ends_[place] - begin));
}

}  // namespace decent
