#include "decent/data/subset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/permutation.h"

namespace decent {
namespace {

// Some samples of another source, in its order.
class Subset : public Source {
 public:
  explicit Subset(std::unique_ptr<Source> source) : source_(std::move(source)) {}

  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool decodes() const override { return source_->decodes(); }
  void read(std::size_t field, std::span<const std::int64_t> indices,
            std::byte* out) const override {
    source_->read(field, places_of(indices), out);
  }
  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const override {
    source_->read_fields(places_of(indices), outs);
  }
  void read_one(std::span<const std::size_t> fields, std::int64_t index,
                std::span<HostArray> sample) const override {
    source_->read_one(fields, place_of(index), sample);
  }
  std::vector<std::string> classes() const override { return source_->classes(); }
  Options learned() const override { return source_->learned(); }
  std::vector<std::string> notes() const override { return source_->notes(); }
  void check_there(std::int64_t index) const override { source_->check_there(place_of(index)); }
  std::int64_t length_of(std::int64_t index) const override {
    return source_->length_of(place_of(index));
  }
  SampleOrigin origin_of(std::int64_t index) const override {
    return source_->origin_of(place_of(index));
  }

 protected:
  /// The number of sample `index` in the other source.
  virtual std::int64_t place_of(std::int64_t index) const = 0;

  std::int64_t count() const { return source_->size(); }

 private:
  std::vector<std::int64_t> places_of(std::span<const std::int64_t> indices) const {
    std::vector<std::int64_t> places;
    places.reserve(indices.size());
    for (const std::int64_t index : indices) places.push_back(place_of(index));
    return places;
  }

  std::unique_ptr<Source> source_;
};

class Limited final : public Subset {
 public:
  Limited(std::unique_ptr<Source> source, std::int64_t most)
      : Subset(std::move(source)), size_(most) {}
  std::int64_t size() const override { return size_; }

 private:
  std::int64_t place_of(std::int64_t index) const override { return index; }

  std::int64_t size_;
};

// The samples at `places`, which are in ascending order.
class Chosen final : public Subset {
 public:
  Chosen(std::unique_ptr<Source> source, std::vector<std::int64_t> places)
      : Subset(std::move(source)), places_(std::move(places)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(places_.size()); }

 private:
  std::int64_t place_of(std::int64_t index) const override {
    return places_[static_cast<std::size_t>(index)];
  }

  std::vector<std::int64_t> places_;
};

// All samples except those at `places`, which are in ascending order.
class Others final : public Subset {
 public:
  Others(std::unique_ptr<Source> source, const std::vector<std::int64_t>& places)
      : Subset(std::move(source)), size_(count() - static_cast<std::int64_t>(places.size())) {
    before_.reserve(places.size());
    for (const std::int64_t place : places)
      before_.push_back(place - static_cast<std::int64_t>(before_.size()));
  }
  std::int64_t size() const override { return size_; }

 private:
  // The left-out samples before it are those with at most `index` kept samples before them.
  std::int64_t place_of(std::int64_t index) const override {
    return index + (std::upper_bound(before_.begin(), before_.end(), index) - before_.begin());
  }

  std::int64_t size_;
  std::vector<std::int64_t> before_;  // for each left-out sample, the kept samples before it
};

// An epoch number that no training order uses, because those are small.
constexpr std::uint64_t kEpoch = std::numeric_limits<std::uint64_t>::max();

std::vector<std::int64_t> chosen(std::int64_t samples, std::int64_t count, std::uint64_t seed) {
  const KeyedPermutation order(static_cast<std::uint64_t>(samples), seed, kEpoch);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i)
    places.push_back(static_cast<std::int64_t>(order(static_cast<std::uint64_t>(i))));
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

std::unique_ptr<Source> limited(std::unique_ptr<Source> source, std::int64_t most) {
  if (source->size() <= most) return source;
  return std::make_unique<Limited>(std::move(source), most);
}

std::unique_ptr<Source> held_out(std::unique_ptr<Source> source, const Holdout& holdout) {
  const std::int64_t samples = source->size();
  const std::int64_t kept = std::llround(holdout.fraction * static_cast<double>(samples));
  if (kept == 0 || kept == samples) {
    throw UserError("holdout: its fraction of " + counted(samples, "sample") +
                    " leaves nothing for " + (kept == 0 ? "evaluation" : "training"));
  }
  std::vector<std::int64_t> places = chosen(samples, kept, holdout.seed);
  if (holdout.evaluates) return std::make_unique<Chosen>(std::move(source), std::move(places));
  return std::make_unique<Others>(std::move(source), places);
}

}  // namespace decent
