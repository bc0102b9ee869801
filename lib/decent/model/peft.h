#pragma once
// Adapters as the Python package PEFT keeps them (huggingface.co/docs/peft, "PEFT checkpoint
// format"): a folder with adapter_config.json and adapter_model.safetensors.

#include <filesystem>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// The name of the file of tensors in such a folder.
inline constexpr const char* kPeftTensors = "adapter_model.safetensors";

/// Writes the adapters of `model`, and the modules of parameters that trained as a whole, to
/// `folder`. Returns why there is no folder if PEFT could not load it on the same model in Python:
/// weights that are not those of a linear layer, a convolution without groups or an embedding,
/// weights that several modules share, and names that PEFT would take for those of other modules.
/// PEFT also needs the module's own forward to use the weight, which a file does not show. Throws
/// WriteError.
std::string save_for_peft(Model& model, const std::filesystem::path& folder);

}  // namespace decent
