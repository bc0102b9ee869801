#pragma once
// Weights that a model starts from, in place of those of its own file.

#include <filesystem>

#include "decent/model/torchscript_model.h"

namespace decent {

/// Copies every parameter and buffer of the model from a file: .safetensors with state_dict names,
/// or .pt, a TorchScript module or a plain dict of tensors that torch.save wrote. Floating-point
/// types are converted. Throws UserError naming, together, what is missing, what the model does not
/// have and what has another shape.
void load_weights(TorchScriptModel& model, const std::filesystem::path& path);

}  // namespace decent
