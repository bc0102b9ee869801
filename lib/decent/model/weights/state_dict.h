#pragma once
// The state_dict in a file of torch.save. No torch.

#include <optional>

#include "decent/core/pickle.h"
#include "decent/core/stored_tensor.h"
#include "decent/core/torch_file.h"

namespace decent {

/// The file's state_dict: the file's whole content, or, if that is a dictionary with other things
/// as well, the first of its entries "state_dict", "model", "module" and "model_state_dict" that is
/// one. All other entries are ignored. Throws UserError if there is none, and if it has anything
/// but tensors.
StoredTensors read_state_dict(const TorchFile& file);

/// The entries of a dictionary, or of an object whose class is one, such as an OrderedDict; nothing
/// for other values.
std::optional<pickle::Entries> entries_of(const pickle::Pickle& pickle, pickle::Ref ref);

}  // namespace decent
