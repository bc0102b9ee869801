#pragma once
// Tensors in files of torch.save and torch.jit.save. No torch.

#include <string>
#include <string_view>

#include "decent/core/pickle.h"
#include "decent/core/stored_tensor.h"
#include "decent/core/torch_file.h"

namespace decent {

/// Whether a value is a tensor, also one that read_tensor() refuses.
bool is_tensor(const pickle::Pickle& pickle, pickle::Ref ref);

/// The tensor that a value is. Throws UserError naming it where it is none, of a kind or element
/// type that no model here can have (sparse, quantized, complex, ..), or where it does not lie in
/// the memory that the file has for it.
StoredTensor read_tensor(const TorchFile& file, pickle::Ref ref, const std::string& name);

/// Throws UserError for a name that is longer than any that a model has: a file of a few bytes
/// could ask for it again and again.
void check_name(const TorchFile& file, std::string_view name);

/// What a value is, for messages: "a number", "an object of class 'argparse.Namespace', ..".
std::string kind_of(const pickle::Pickle& pickle, pickle::Ref ref);

}  // namespace decent
