#include "decent/data/weighted_order.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "decent/core/splitmix64.h"

namespace decent {
namespace {

__extension__ using Uint128 = unsigned __int128;

// Sets these draws apart from all other streams of the same seed and epoch.
constexpr std::uint64_t kStream = 0x73616D706C696E67;  // "sampling"

// The power of two that turns the weights into numbers with a sum in [2^61, 2^62). The sum is taken
// of weights that are divided by a power of two first, so that it does not overflow. Only additions
// and powers of two: every machine rounds them alike.
int exponent_for(std::span<const double> weights) {
  const int largest = std::ilogb(*std::max_element(weights.begin(), weights.end()));
  double sum = 0;
  for (const double weight : weights) sum += std::ldexp(weight, -largest);
  return 61 - std::ilogb(sum) - largest;
}

// An exponential variate with mean 1, from the stream of random numbers that begins at `key`. With
// the first number x, the chance that a falling run of numbers has an odd length is exp(-x). If it
// is even, the next try adds 1.
double exponential(std::uint64_t key) {
  std::uint64_t drawn = 0;
  for (double whole = 0;; ++whole) {
    const std::uint64_t first = splitmix64(key, drawn++);
    std::uint64_t last = first;
    bool is_odd = true;
    for (;; is_odd = !is_odd) {
      const std::uint64_t next = splitmix64(key, drawn++);
      if (next >= last) break;
      last = next;
    }
    if (is_odd) return whole + static_cast<double>(first >> 11) * 0x1p-53;
  }
}

}  // namespace

WeightedOrder::WeightedOrder(std::span<const double> weights, bool replacement, std::uint64_t seed)
    : replacement_(replacement), seed_(seed) {
  assert(std::ranges::all_of(weights, [](double w) { return w >= 0 && std::isfinite(w); }));
  assert(std::ranges::any_of(weights, [](double w) { return w > 0; }));
  const int exponent = exponent_for(weights);
  std::uint64_t sum = 0;
  ends_.reserve(weights.size());
  for (const double weight : weights) {
    const auto whole = static_cast<std::uint64_t>(std::llrint(std::ldexp(weight, exponent)));
    if (weight == 0) ++never_drawn_;
    sum += weight == 0 ? 0 : std::max<std::uint64_t>(1, whole);
    ends_.push_back(sum);
  }
}

std::int64_t WeightedOrder::epoch_size() const {
  return std::ssize(ends_) - (replacement_ ? 0 : never_drawn_);
}

void WeightedOrder::draw(std::int64_t epoch, std::span<std::int64_t> positions) const {
  if (replacement_) {
    const std::uint64_t key = key_of(epoch);
    for (std::int64_t& position : positions) position = sample_at(key, position);
    return;
  }
  const auto order = kept_order_of(epoch);
  for (std::int64_t& position : positions) position = order->at(static_cast<std::size_t>(position));
}

std::uint64_t WeightedOrder::key_of(std::int64_t epoch) const {
  return splitmix64(splitmix64(splitmix64(0, seed_), static_cast<std::uint64_t>(epoch)), kStream);
}

// The chance of a sample differs from its share of the sum by less than 2^-63.
std::int64_t WeightedOrder::sample_at(std::uint64_t key, std::int64_t position) const {
  const std::uint64_t random = splitmix64(key, static_cast<std::uint64_t>(position));
  const auto drawn = static_cast<std::uint64_t>((Uint128{random} * ends_.back()) >> 64);
  return std::upper_bound(ends_.begin(), ends_.end(), drawn) - ends_.begin();
}

WeightedOrder::Samples WeightedOrder::order_of(std::int64_t epoch) const {
  const std::uint64_t key = key_of(epoch);
  std::vector<std::pair<double, std::int64_t>> keyed;
  keyed.reserve(static_cast<std::size_t>(epoch_size()));
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const std::uint64_t weight = ends_[i] - std::exchange(begin, ends_[i]);
    if (weight == 0) continue;
    keyed.emplace_back(exponential(splitmix64(key, i)) / static_cast<double>(weight),
                       static_cast<std::int64_t>(i));
  }
  std::sort(keyed.begin(), keyed.end());
  Samples order;
  order.reserve(keyed.size());
  for (const auto& [place, sample] : keyed) order.push_back(sample);
  return order;
}

std::shared_ptr<const WeightedOrder::Samples> WeightedOrder::kept_order_of(
    std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  Epoch& kept = epochs_[static_cast<std::size_t>(epoch % 2)];
  if (!kept.order || kept.number != epoch)
    kept = {epoch, std::make_shared<const Samples>(order_of(epoch))};
  return kept.order;
}

}  // namespace decent
