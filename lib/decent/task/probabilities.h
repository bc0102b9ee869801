#pragma once
// Models that end in the Softmax or Sigmoid that their loss applies itself.

#include <optional>
#include <string>

#include "decent/model/import_options.h"
#include "decent/task/task.h"

namespace decent {

struct Trial;

/// The options for reading the model's file, from the recipe.
ImportOptions import_options(const ModelRecipe& recipe);

/// Whether `output`, of one batch, could be a result of the activation that the loss applies: rows
/// that are >= 0 and sum to 1, or numbers from 0 to 1. nullopt if the loss applies none, or if the
/// output is empty or not floating-point.
std::optional<bool> looks_like_probabilities(const at::Tensor& output, const Recipe& recipe);

/// Makes the model give the file's output instead of logits if the loss's activation of the logits
/// differs from that output on `samples` of `data` (as for a Softmax over another dimension). All
/// workers use the same samples, so they decide alike. Throws UserError.
void check_logits(Task& task, const DataSet& data, std::span<const std::int64_t> samples);

struct OutputAdvice {
  std::string note;     // says that logits are taken; or empty
  std::string warning;  // says that probabilities are trained on as logits; or empty
};

/// Advice for the user about the output that the loss is given.
OutputAdvice output_advice(const Task& task, const Trial& trial);

}  // namespace decent
