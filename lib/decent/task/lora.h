#pragma once
// The recipe's model.lora: which parameters of a model get adapters, which train as a whole, and
// the base that stays as it is.

#include <cstdint>
#include <filesystem>
#include <string>

#include "decent/config/recipe.h"
#include "decent/model/model.h"

namespace decent {

/// Facts about the base and the adapters of a task; empty without model.lora.
struct LoraFacts {
  std::string base = {};      // checksum of names, types, shapes and values
  std::string adapters = {};  // what their names and shapes do not say
  /// About the file of adapters that was read, for the user: it was trained on another base.
  std::string warning = {};
};

/// Adds adapters to the model, with values of A that depend only on `seed` or with those of the
/// recipe's file. Throws UserError naming the key for globs that match nothing, or nothing with two
/// dimensions, for a parameter that both match and train name, and for a file that does not fit.
LoraFacts add_adapters(Model& model, const LoraRecipe& recipe, std::uint64_t seed);

/// Writes what trained under model.lora, so that model.lora.adapters can read it: the adapters, the
/// parameters that trained as a whole, and the buffers, in a safetensors file with the facts in its
/// metadata. Throws WriteError.
void save_adapters(const Model& model, const LoraFacts& facts, const std::filesystem::path& path);

}  // namespace decent
