#pragma once
// Weights from which a model starts, in place of the weights in its own file.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/model/model.h"

namespace decent {

/// Which tensors of a file are taken.
struct WeightsChoice {
  std::vector<std::string> ignore = {};  // globs over the model's names
  /// Prefixes of names in the file, and their replacements. For each name the first matching prefix
  /// counts.
  std::vector<std::pair<std::string, std::string>> rename = {};
};

/// Copies every parameter and buffer of the model from a file that read_weights() reads; no code in
/// the file is run. The prefixes "module." and "_orig_mod." are removed if all names have them and
/// the model's names do not; after that, names are changed by `rename`. Floating-point types are
/// converted. A counter num_batches_tracked that is missing beside running_mean keeps its value,
/// and so do ignored tensors, whether or not the file has them. Returns the model's names that were
/// ignored. Throws UserError naming model.weights, the file and, all at once, the tensors that are
/// missing, that the model does not have and that have another shape or type; and for a glob or a
/// prefix that matches no name.
std::vector<std::string> load_weights(Model& model, const std::filesystem::path& path,
                                      const WeightsChoice& choice = {});

/// Copies every tensor of such a file to the tensor of the same name in `own`, tensors of `model`,
/// all of which the file must have. Throws UserError as load_weights() does, but names no key.
void load_tensors(const Model& model, const Model::NamedTensors& own,
                  const std::filesystem::path& path);

}  // namespace decent
