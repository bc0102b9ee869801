#pragma once
// A source and the transforms of its samples before they become batches.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/data/batch.h"
#include "decent/data/source.h"
#include "decent/data/transforms/transform.h"

namespace decent {

/// Samples that cannot be read and are left out (data.on_error: skip). All functions may be called
/// from any thread.
class LeftOut {
 public:
  /// What replaces a sample that is left out.
  enum class Instead {
    next_sample,  // the next one that can be read, so that batches of training keep their size
    nothing,      // for evaluation, which takes each sample once
  };

  explicit LeftOut(Instead instead) : instead_(instead) {}

  Instead instead() const { return instead_; }
  void add(std::int64_t sample, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (known_.insert(sample).second) new_.emplace(sample, why);
  }
  bool contains(std::int64_t sample) {
    const std::lock_guard lock(mutex_);
    return known_.contains(sample);
  }
  /// The samples that were added since the last call, by number, each once.
  std::map<std::int64_t, std::string> take_new() {
    const std::lock_guard lock(mutex_);
    return std::exchange(new_, {});
  }

 private:
  Instead instead_;
  std::mutex mutex_;
  std::set<std::int64_t> known_;
  std::map<std::int64_t, std::string> new_;
};

/// Transforms of samples in the order in which they are applied, and then of batches, of which each
/// batch takes one.
struct Transforms {
  std::vector<std::unique_ptr<SampleTransform>> of_samples = {};
  std::vector<std::unique_ptr<BatchTransform>> of_batches = {};
};

/// Immutable: calls may come from any thread at once.
class Samples {
 public:
  /// The random numbers of a transform depend only on the seed, the epoch, the sample's number (for
  /// a batch, the first sample's) and the transform's place. Throws UserError if a transform does
  /// not fit the fields that it gets, or if transforms of batches make different fields. With
  /// `left_out` a sample that cannot be read or transformed is noted there and left out.
  explicit Samples(std::unique_ptr<const Source> source, Transforms transforms = {},
                   std::uint64_t seed = 0, std::shared_ptr<LeftOut> left_out = nullptr);

  const Source& source() const { return *source_; }
  std::int64_t size() const { return source_->size(); }
  /// The fields of a sample in a batch. An extent may still differ from batch to batch.
  const std::vector<Field>& fields() const { return fields_; }

  /// The samples `indices`, each in [0, size()), as a batch of the fields with numbers `fields`; a
  /// batch without fields if all samples are left out. Throws UserError for a sample that cannot be
  /// read or transformed, and if the samples of the batch differ in extents.
  Batch read(std::span<const std::size_t> fields, std::span<const std::int64_t> indices,
             std::int64_t epoch, HostMemory memory) const;

  /// The same for one sample, before transforms of batches. Fills the chosen fields of `sample`,
  /// which has an array for each field. Throws UserError even if the sample would be left out.
  void read_one(std::span<const std::size_t> fields, std::int64_t index, std::int64_t epoch,
                std::vector<HostArray>& sample) const;

 private:
  using Sample = std::vector<HostArray>;

  Batch read_all(std::span<const std::size_t> fields, std::span<const std::int64_t> indices,
                 std::int64_t epoch, HostMemory memory) const;
  Batch read_each(std::span<const std::size_t> fields, std::span<const std::int64_t> indices,
                  std::int64_t epoch, HostMemory memory) const;
  bool read_or_replace(std::span<const std::size_t> fields, std::int64_t index, std::int64_t epoch,
                       Sample& sample) const;
  std::size_t choose_transform(std::int64_t epoch, std::int64_t first_sample) const;
  void transform(Batch& batch, std::span<const std::size_t> fields, const BatchTransform& transform,
                 const SampleRandom& random, HostMemory memory) const;

  std::unique_ptr<const Source> source_;
  Transforms transforms_;
  std::uint64_t seed_;
  std::vector<Field> sample_fields_;   // before transforms of batches
  std::vector<Field> fields_;          // after them
  std::vector<std::size_t> all_;       // the numbers of the source's fields
  std::shared_ptr<LeftOut> left_out_;  // null: no sample is left out
};

}  // namespace decent
