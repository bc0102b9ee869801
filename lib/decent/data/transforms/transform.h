#pragma once
// What is done to a sample between its source and the batch: resized, cropped, flipped; and to a
// whole batch: mixed. A row per transform, as formats have theirs; a program may register its own.
// Without torch.

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

/// Changes samples. fields() is called once and before apply(), which any threads call at once.
class SampleTransform {
 public:
  virtual ~SampleTransform() = default;

  /// What fields `before` become: their extents and types. Remembers which of them it changes.
  /// Throws UserError where they are nothing for this transform.
  virtual std::vector<Field> fields(std::vector<Field> before) = 0;
  /// Changes `sample`, an array for each field. Throws UserError for a sample that does not fit,
  /// e.g. an image smaller than what is cut out of it.
  virtual void apply(std::vector<HostArray>& sample, SampleRandom& random) const = 0;
  /// Whether it draws random numbers, which evaluation does not.
  virtual bool random() const { return false; }
  /// Of a random one, what takes its place in evaluation: one that gives the same extents. Null
  /// where it is just left out.
  virtual std::unique_ptr<SampleTransform> in_evaluation() const { return nullptr; }
};

/// Changes the batches of training: what takes several samples at once. Evaluation does without.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;

  /// What fields `before` become, as of SampleTransform. `classes` are those that the source
  /// names; 0 where it names none.
  virtual std::vector<Field> fields(std::vector<Field> before, std::int64_t classes) = 0;
  /// Whether it changes the field of that number.
  virtual bool changes(std::size_t field) const = 0;
  /// Writes a field that it changes, of a whole batch of so many samples, row-major from `before`
  /// to `after`, which do not overlap. `random` is at the same place for all fields of a batch.
  /// Throws UserError for values that are nothing for it.
  virtual void apply(std::size_t field, std::int64_t samples, std::span<const std::byte> before,
                     std::span<std::byte> after, SampleRandom random) const = 0;
};

/// A row of the table: a transform of samples or of batches.
struct Transform {
  std::string name;     // as a list of transforms in a recipe has it
  std::string meaning;  // for the reference: a sentence
  /// The first is the one that `{name: value}` gives where the value is no mapping.
  std::vector<OptionKey> keys;
  /// Throws UserError for values that do not go together. Empty in a row for batches.
  std::function<std::unique_ptr<SampleTransform>(const Options& options)> make = {};
  /// The same in a row for batches.
  std::function<std::unique_ptr<BatchTransform>(const Options& options)> make_for_batches = {};
};

/// Makes a transform known by its name, for this process. Throws UserError for an empty name, one
/// that is taken, and a transform that makes nothing or both kinds. Any thread.
void register_transform(Transform transform);

/// The transform of that name. Throws UserError for an unknown one, listing all. Any thread.
Transform transform_row(std::string_view name);

/// All that transform_row knows: those that come with the library, then those that were registered.
/// Any thread.
std::vector<Transform> transform_rows();

}  // namespace decent
