#include "decent/parallel/arrivals.h"

namespace decent {

Arrivals::Arrivals(std::span<const Bucket> buckets) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    sizes_.push_back(buckets[b].parameters.size());
    for (const std::size_t parameter : buckets[b].parameters) {
      if (parameter >= bucket_of_.size()) bucket_of_.resize(parameter + 1);
      bucket_of_[parameter] = b;
    }
  }
  begin();
}

void Arrivals::begin() {
  arrived_.assign(bucket_of_.size(), false);
  missing_ = sizes_;
  next_ = 0;
}

void Arrivals::note(std::size_t parameter) {
  if (arrived_[parameter]) return;
  arrived_[parameter] = true;
  --missing_[bucket_of_[parameter]];
}

std::optional<std::size_t> Arrivals::take_complete() {
  if (next_ == missing_.size() || missing_[next_] > 0) return std::nullopt;
  return next_++;
}

std::optional<std::size_t> Arrivals::take_any() {
  if (next_ == missing_.size()) return std::nullopt;
  return next_++;
}

}  // namespace decent
