#pragma once
// Files with weights that a model starts from (model.weights), of any format; files of models are
// in model/formats.h. No torch.

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

/// Reads what the end of the file's name says: .safetensors, or a file of torch.save or
/// torch.jit.save. Nothing of the file is run, whatever it holds. Throws UserError naming the file.
WeightsFile read_weights(const std::filesystem::path& path);

/// The weights in the bytes of a file of torch.save (a state_dict, see read_state_dict) or
/// torch.jit.save, which outlive the result. Throws UserError naming the file `name`.
StoredTensors read_torch_weights(std::span<const std::byte> bytes, const std::string& name);

}  // namespace decent
