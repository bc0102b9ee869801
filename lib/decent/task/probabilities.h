#pragma once
// Models that end in the Softmax or Sigmoid that their loss applies itself.

#include <string>

#include "decent/train/setup.h"

namespace decent {

/// How the recipe has the model's file read.
ImportOptions import_options(const ModelRecipe& recipe);

/// Notes in `setup` whether `output`, of a batch that was tried, could be what comes out of the
/// activation that the loss applies: rows that are >= 0 and sum to 1, numbers from 0 to 1.
void look_for_probabilities(const at::Tensor& output, Setup& setup);

/// Takes the output as the file has it, in place of logits, where these do not give it on the first
/// `batch_size` samples of `data`: a Softmax over another dimension than the loss's. All workers
/// look at the same samples, so that they decide alike. Throws UserError.
void check_logits(Setup& setup, const DataSet& data, std::int64_t batch_size);

struct OutputAdvice {
  std::string note;     // that logits are taken; or empty
  std::string warning;  // that probabilities are trained on as if they were logits; or empty
};

/// What the user should know of the output that the loss is given.
OutputAdvice output_advice(const Setup& setup);

}  // namespace decent
