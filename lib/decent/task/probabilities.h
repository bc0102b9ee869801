#pragma once
// Models that end in the Softmax or Sigmoid that their loss applies itself.

#include <optional>
#include <string>

#include "decent/model/import_options.h"
#include "decent/task/task.h"

namespace decent {

struct Trial;

/// How the recipe has the model's file read.
ImportOptions import_options(const ModelRecipe& recipe);

/// Whether `output`, of one batch, could be what comes out of the activation that the loss applies:
/// rows that are >= 0 and sum to 1, or numbers from 0 to 1. Nothing where the loss applies none, or
/// the output holds no numbers that tell.
std::optional<bool> looks_like_probabilities(const at::Tensor& output, const Recipe& recipe);

/// Takes the output as the file has it, in place of logits, where these do not give it on the first
/// `batch_size` samples of `data`: a Softmax over another dimension than the loss's. All workers
/// look at the same samples, so that they decide alike. Throws UserError.
void check_logits(Task& task, const DataSet& data, std::int64_t batch_size);

struct OutputAdvice {
  std::string note;     // that logits are taken; or empty
  std::string warning;  // that probabilities are trained on as if they were logits; or empty
};

/// What the user should know of the output that the loss is given.
OutputAdvice output_advice(const Task& task, const Trial& trial);

}  // namespace decent
