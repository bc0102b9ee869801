#pragma once
// Files with weights from which a model starts (model.weights), of any format; model/formats.h has
// the files of models. No torch.

#include <filesystem>
#include <span>
#include <string>

#include "decent/core/file.h"
#include "decent/core/stored_tensor.h"

namespace decent {

/// `tensors` point into `file`.
struct WeightsFile {
  MappedFile file;
  StoredTensors tensors;
};

/// Reads a .safetensors file, or a file of torch.save or torch.jit.save, as the ending of its name
/// says. No code in the file is run, whatever it holds. Throws UserError naming the file.
WeightsFile read_weights(const std::filesystem::path& path);

/// The weights in a file of torch.save (a state_dict, see read_state_dict) or torch.jit.save.
/// `bytes` must outlive the result. Throws UserError naming the file `name`.
StoredTensors read_torch_weights(std::span<const std::byte> bytes, const std::string& name);

}  // namespace decent
