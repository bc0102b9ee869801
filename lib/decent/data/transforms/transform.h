#pragma once
// Changes of a sample between its source and the batch, such as resizing, cropping and flipping,
// and changes of a whole batch, such as mixing. Each transform has a row in a table, as formats do,
// and a program may register its own. No torch.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
#include "decent/data/source.h"
#include "decent/data/transforms/sample_random.h"

namespace decent {

/// Changes samples. fields() is called once, before apply(), which several threads may call at the
/// same time.
class SampleTransform {
 public:
  virtual ~SampleTransform() = default;

  /// The extents and types of the fields `before` after this transform, which remembers the ones
  /// that it changes. A transform that moves the pixels of an image moves those of its mask, too
  /// (Field::mask_of). Throws UserError for fields that it cannot take.
  virtual std::vector<Field> fields(std::vector<Field> before) = 0;
  /// Changes `sample`, an array for each field. Throws UserError for a sample that does not fit,
  /// e.g. an image smaller than the crop.
  virtual void apply(std::vector<HostArray>& sample, SampleRandom& random) const = 0;
  /// Whether it draws random numbers, which evaluation does not.
  virtual bool random() const { return false; }
  /// For a random transform, its replacement in evaluation, which gives the same extents. Null if
  /// it is just left out.
  virtual std::unique_ptr<SampleTransform> in_evaluation() const { return nullptr; }
};

/// Changes the batches of training, for changes that need several samples at once. Evaluation
/// leaves it out. If a list has several, each batch takes one of them, all with equal chances.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;

  /// The fields after this transform, as in SampleTransform. `classes` is the number of classes
  /// that the source names, 0 if it names none.
  virtual std::vector<Field> fields(std::vector<Field> before, std::int64_t classes) = 0;
  /// Whether it changes the field with that number.
  virtual bool changes(std::size_t field) const = 0;
  /// Reads a field that it changes, for a whole batch of `samples` samples, from `before` and
  /// writes it to `after`; both are row-major and do not overlap. `random` is in the same state for
  /// all fields of a batch. Throws UserError for values that it cannot take.
  virtual void apply(std::size_t field, std::int64_t samples, std::span<const std::byte> before,
                     std::span<std::byte> after, SampleRandom random) const = 0;
};

/// A row of the table: a transform of samples or of batches.
struct Transform {
  std::string name;     // as in a recipe's list of transforms
  std::string meaning;  // for the reference: a sentence
  /// The first key is the one that `{name: value}` sets if the value is no mapping.
  std::vector<OptionKey> keys;
  /// Throws UserError for values that contradict one another. Empty in a row for batches.
  std::function<std::unique_ptr<SampleTransform>(const Options& options)> make = {};
  /// The same in a row for batches.
  std::function<std::unique_ptr<BatchTransform>(const Options& options)> make_for_batches = {};
};

/// Makes a transform available under its name, in this process. Throws UserError for an empty name,
/// a name that is taken, and a transform that makes nothing or both kinds. Any thread.
void register_transform(Transform transform);

/// The transform of that name. Throws UserError for an unknown one, listing all. Any thread.
Transform transform_row(std::string_view name);

/// All transforms that transform_row knows: first those of the library, then those that were
/// registered. Any thread.
std::vector<Transform> transform_rows();

}  // namespace decent
