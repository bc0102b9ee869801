#pragma once
// The tensors of a module that torch.jit.save wrote, without running its code. No torch.

#include "decent/core/stored_tensor.h"
#include "decent/core/torch_file.h"

namespace decent {

/// Whether the file holds an object of a TorchScript class.
bool holds_script_module(const TorchFile& file);

/// The parameters and buffers of the module and of those inside it, under their state_dict names;
/// the code in the file, read as text, tells which attributes these are. Buffers that are not
/// persistent are included, because the file does not mark them. Throws UserError if a module
/// creates its state by code (__setstate__), which is not run, and for damaged files.
StoredTensors read_script_module(const TorchFile& file);

}  // namespace decent
