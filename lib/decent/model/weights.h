#pragma once
// Weights that a model starts from, in place of those of its own file.

#include <filesystem>

#include "decent/model/model.h"

namespace decent {

/// Copies every parameter and buffer of the model from a file that read_weights() reads; nothing of
/// the file is run. "module." and "_orig_mod." before all of its names are left out where the model
/// has none such; floating-point types are converted; a counter num_batches_tracked that is missing
/// beside running_mean keeps its value. Throws UserError naming model.weights, the file and,
/// together, what is missing, what the model does not have and what has another shape or type.
void load_weights(Model& model, const std::filesystem::path& path);

}  // namespace decent
