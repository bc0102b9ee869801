#include "decent/task/lora.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/checkpoint/checksum.h"
#include "decent/config/scalars.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/file_extras.h"
#include "decent/model/peft.h"
#include "decent/model/tensor_file.h"
#include "decent/model/weights.h"
#include "decent/parallel/named_tensors.h"
#include "decent/task/param_groups.h"

namespace decent {
namespace {

constexpr const char* kMatchKey = "model.lora.match";
constexpr const char* kTrainKey = "model.lora.train";
constexpr const char* kBaseEntry = "decent_train.base";
constexpr const char* kAdaptersEntry = "decent_train.adapters";

/// A parameter with all its names; tied ones have several, of which the first counts.
struct NamedParameter {
  std::vector<std::string> names;
  at::Tensor tensor;
};

std::vector<NamedParameter> parameters_of(const Model& model) {
  std::vector<NamedParameter> parameters;
  for (const auto& [name, tensor] : model.parameters()) {
    NamedParameter each{.names = {name}, .tensor = tensor};
    for (const auto& [other, same] : model.state())
      if (same.is_same(tensor) && other != name) each.names.push_back(other);
    parameters.push_back(std::move(each));
  }
  return parameters;
}

// Of a parameter any name may match.
NamedTensors matching(const std::vector<NamedParameter>& parameters, const std::string& key,
                      std::span<const std::string> globs) {
  std::vector<std::string> names;
  for (const auto& each : parameters)
    names.insert(names.end(), each.names.begin(), each.names.end());
  for (const std::string& glob : globs) check_matches(key, glob, names);
  NamedTensors found;
  for (const auto& each : parameters) {
    if (std::ranges::any_of(each.names, [&](const auto& name) { return matches_any(globs, name); }))
      found.emplace_back(each.names.front(), each.tensor);
  }
  return found;
}

bool is_matrix(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const bool has_arithmetic = type == at::kFloat || type == at::kDouble || type == at::kBFloat16 ||
                              type == at::kHalf;  // unlike types of 8 bits
  return tensor.dim() >= 2 && tensor.numel() > 0 && has_arithmetic;
}

// Biases that a glob matches beside weights get none.
NamedTensors adapted_weights(const std::vector<NamedParameter>& parameters,
                             std::span<const std::string> globs) {
  if (globs.empty())
    throw UserError(std::string(kMatchKey) + ": names no weight that is to have an adapter");
  NamedTensors weights;
  for (const std::string& glob : globs) {
    const NamedTensors found = matching(parameters, kMatchKey, std::span(&glob, 1));
    if (std::ranges::any_of(found, [](const auto& each) { return is_matrix(each.second); }))
      continue;
    throw UserError(std::string(kMatchKey) + ": '" + glob + "' matches " +
                    in_quotes(found.front().first) + " " +
                    dtype_text(found.front().second.scalar_type()) +
                    shape_text(found.front().second.sizes()) + (found.size() > 1 ? ", .." : "") +
                    ": only weights of float types with at least two dimensions can have "
                    "adapters. " +
                    kTrainKey + " trains others as a whole");
  }
  for (const auto& entry : matching(parameters, kMatchKey, globs))
    if (is_matrix(entry.second)) weights.push_back(entry);
  return weights;
}

void check_trained(const NamedTensors& weights, const NamedTensors& trained) {
  for (const auto& [name, tensor] : trained) {
    if (!tensor.is_floating_point()) {
      throw UserError(std::string(kTrainKey) + ": " + in_quotes(name) + " is " +
                      dtype_text(tensor.scalar_type()) + ", which cannot train");
    }
    const bool both = std::ranges::any_of(
        weights, [&, &tensor = tensor](const auto& each) { return each.second.is_same(tensor); });
    if (both) {
      throw UserError(in_quotes(name) + " is named by " + kMatchKey + " and by " + kTrainKey +
                      ": a weight has an adapter or trains as a whole");
    }
  }
}

std::string checksum_of(const NamedTensors& tensors) {
  Checksum checksum;
  for (const auto& [name, tensor] : tensors) {
    checksum.add(name + " " + dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes()) + "\n");
    const at::Tensor values = tensor.detach().contiguous();
    checksum.add({static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
  }
  return checksum.hex();
}

std::string facts_text(const LoraRecipe& recipe) {
  return "rank " + std::to_string(recipe.rank) + ", alpha " + number_text(recipe.alpha);
}

// What trains, and what changes while it does.
NamedTensors changing_tensors(const Model& model) {
  NamedTensors tensors = model.parameters();
  tensors.insert(tensors.end(), model.buffers().begin(), model.buffers().end());
  return tensors;
}

// Returns a warning, or "".
std::string load_adapters(Model& model, const LoraRecipe& recipe, const LoraFacts& facts) {
  const std::filesystem::path& path = *recipe.adapters;
  const auto metadata = [&](const char* key) { return text_in_safetensors(path, key); };
  try {
    load_tensors(model, changing_tensors(model), path);
    if (const std::string then = metadata(kAdaptersEntry); !then.empty() && then != facts.adapters)
      throw UserError("'" + path.string() + "' was trained with " + then + "; model.lora has " +
                      facts.adapters);
  } catch (const UserError& error) {
    const bool is_pefts = path.filename() == kPeftTensors;
    throw UserError("model.lora.adapters: " + std::string(error.what()) +
                    (is_pefts ? "\nThis is a file for PEFT; adapters.safetensors of the same run "
                                "has what decent-train reads"
                              : ""));
  }
  const std::string base = metadata(kBaseEntry);
  if (base.empty() || base == facts.base) return "";
  return "model.lora.adapters: '" + path.string() +
         "' was trained with other weights of the base than this model has";
}

}  // namespace

LoraFacts add_adapters(Model& model, const LoraRecipe& recipe, std::uint64_t seed) {
  const std::vector<NamedParameter> parameters = parameters_of(model);
  const NamedTensors weights = adapted_weights(parameters, recipe.match);
  const NamedTensors trained = matching(parameters, kTrainKey, recipe.train);
  check_trained(weights, trained);
  model.add_adapters(weights, trained, {.rank = recipe.rank, .alpha = recipe.alpha, .seed = seed});
  LoraFacts facts{.base = checksum_of(model.base()), .adapters = facts_text(recipe)};
  if (recipe.adapters) facts.warning = load_adapters(model, recipe, facts);
  return facts;
}

void save_adapters(const Model& model, const LoraFacts& facts, const std::filesystem::path& path) {
  save_tensors(changing_tensors(model), path,
               {{kBaseEntry, facts.base}, {kAdaptersEntry, facts.adapters}});
}

}  // namespace decent
