#pragma once
// The state_dict in a file of torch.save. No torch.

#include <optional>

#include "decent/core/pickle.h"
#include "decent/core/stored_tensor.h"
#include "decent/core/torch_file.h"

namespace decent {

/// The file's state_dict: what it holds, or, of a dictionary that holds other things as well, what
/// stands under the first of "state_dict", "model", "module" and "model_state_dict" that is one.
/// Whatever else is there is not looked at. Throws UserError where there is none, and where it has
/// anything but tensors.
StoredTensors read_state_dict(const TorchFile& file);

/// The entries of a dictionary or of an object that is one, such as an OrderedDict; nothing for
/// other values.
std::optional<pickle::Entries> entries_of(const pickle::Pickle& pickle, pickle::Ref ref);

}  // namespace decent
