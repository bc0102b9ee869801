#pragma once
// (x - mean) / std, for numbers that a recipe gives and for those that were computed over the data.

#include <memory>
#include <string>
#include <vector>

#include "decent/data/transforms/transform.h"

namespace decent {

struct Normalization {
  std::string field = "x";
  /// One value for all, or one for each place of the field's first dimension: channels of images,
  /// columns of tables.
  std::vector<double> mean;
  std::vector<double> std;  // > 0
};

/// Of the values of the transform's keys. Throws UserError where mean or std is not given.
Normalization normalization_of(const Options& options);

/// Throws UserError for no values, a std that is not above zero, and numbers that are not finite.
std::unique_ptr<SampleTransform> make_normalize(Normalization normalization);

}  // namespace decent
