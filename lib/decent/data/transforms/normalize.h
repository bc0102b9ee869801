#pragma once
// (x - mean) / std, for numbers that a recipe gives and for those that were computed over the data.

#include <memory>
#include <string>
#include <vector>

#include "decent/data/transforms/transform.h"

namespace decent {

struct Normalization {
  std::string field = "x";
  /// One value for all, or one for each index of the field's first dimension: channels of images,
  /// columns of tables.
  std::vector<double> mean;
  std::vector<double> std;  // > 0

  bool operator==(const Normalization&) const = default;
};

/// Takes the values of the transform's keys. Throws UserError if mean or std is missing.
Normalization normalization_of(const Options& options);

/// Throws UserError if there are no values, if a std is not above zero, and for numbers that are
/// not finite.
std::unique_ptr<SampleTransform> make_normalize(Normalization normalization);

}  // namespace decent
