#pragma once
// What is done to a sample between its source and the batch: resized, cropped, flipped. A row per
// transform, as formats have theirs; a program may register its own. Without torch.

#include <functional>
#include <memory>
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

/// A row of the table.
struct Transform {
  std::string name;     // as a list of transforms in a recipe has it
  std::string meaning;  // for the reference: a sentence
  /// The first is the one that `{name: value}` gives where the value is no mapping.
  std::vector<OptionKey> keys;
  /// Throws UserError for values that do not go together.
  std::function<std::unique_ptr<SampleTransform>(const Options& options)> make;
};

/// Makes a transform known by its name, for this process. Throws UserError for an empty name, one
/// that is taken, and a transform that makes nothing. Any thread.
void register_transform(Transform transform);

/// The transform of that name. Throws UserError for an unknown one, listing all. Any thread.
Transform transform_row(std::string_view name);

/// All that transform_row knows: those that come with the library, then those that were registered.
/// Any thread.
std::vector<Transform> transform_rows();

}  // namespace decent
