#pragma once
// Part of the samples of a source.

#include <cstdint>
#include <memory>

#include "decent/data/source.h"

namespace decent {

/// The first `most` >= 1 samples, or all if there are fewer.
std::unique_ptr<Source> limited(std::unique_ptr<Source> source, std::int64_t most);

struct Holdout {
  double fraction = 0;  // in (0, 1)
  std::uint64_t seed = 0;
  bool evaluates = false;  // the part that is kept for evaluation; else the rest
};

/// Keeps round(fraction * n) of the n samples for evaluation and leaves the others for training.
/// Only n, the fraction and the seed determine the choice. Both parts are in the source's order.
/// Throws UserError if the part has no samples.
std::unique_ptr<Source> held_out(std::unique_ptr<Source> source, const Holdout& holdout);

}  // namespace decent
