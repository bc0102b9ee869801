#pragma once
// Tensors in files of torch.save and torch.jit.save. No torch.

#include <string>
#include <string_view>

#include "decent/core/pickle.h"
#include "decent/core/stored_tensor.h"
#include "decent/core/torch_file.h"

namespace decent {

/// Whether a value is a tensor, including kinds that read_tensor() refuses.
bool is_tensor(const pickle::Pickle& pickle, pickle::Ref ref);

/// Reads a value as a tensor. Throws UserError naming it if it is not a tensor, has a kind or
/// element type that no model here can have (sparse, quantized, complex, ..), or does not fit into
/// the memory that the file has for it.
StoredTensor read_tensor(const TorchFile& file, pickle::Ref ref, const std::string& name);

/// Throws UserError for a name that is longer than any name in a model, because a file of a few
/// bytes could repeat it any number of times.
void check_name(const TorchFile& file, std::string_view name);

/// What a value is, for messages: "a number", "an object of class 'argparse.Namespace', ..".
std::string kind_of(const pickle::Pickle& pickle, pickle::Ref ref);

}  // namespace decent
