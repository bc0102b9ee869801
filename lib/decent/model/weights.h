#pragma once
// Weights that a model starts from, in place of those of its own file.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/model/model.h"

namespace decent {

/// What of a file is taken.
struct WeightsChoice {
  std::vector<std::string> ignore = {};  // globs over the model's names
  /// What names in the file begin with, and what takes its place: the first that fits a name.
  std::vector<std::pair<std::string, std::string>> rename = {};
};

/// Copies every parameter and buffer of the model from a file that read_weights() reads; nothing of
/// the file is run. "module." and "_orig_mod." before all of its names are left out where the model
/// has none such; floating-point types are converted; a counter num_batches_tracked that is missing
/// beside running_mean keeps its value. Names are changed after that; what is ignored keeps its
/// value, whatever the file has of it. Returns the model's names that were ignored. Throws
/// UserError naming model.weights, the file and, together, what is missing, what the model does not
/// have and what has another shape or type; and for a glob or a beginning that fits no name.
std::vector<std::string> load_weights(Model& model, const std::filesystem::path& path,
                                      const WeightsChoice& choice = {});

}  // namespace decent
