#include "decent/task/probabilities.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "decent/data/batch.h"
#include "decent/task/criterion.h"
#include "decent/task/passes.h"
#include "decent/task/random.h"
#include "decent/task/trial.h"

namespace decent {
namespace {

LossActivation activation_of(const ModelRecipe& recipe) {
  return Criterion(recipe).loss().activation;
}

std::string loss_name(const ModelRecipe& recipe) {
  return std::string(Criterion(recipe).loss().name);
}

// The dimension of the classes, counted from 0; nullopt if the output does not have it.
std::optional<std::int64_t> class_dim_of(const at::Tensor& output, const ModelRecipe& recipe) {
  const std::int64_t dim =
      recipe.class_dim < 0 ? recipe.class_dim + output.dim() : recipe.class_dim;
  return dim >= 0 && dim < output.dim() ? std::optional(dim) : std::nullopt;
}

// Rounding in float32 is far below 1e-3; probabilities that were rounded to bfloat16, which has 8
// bits, sum to 1 within 2^-8.
bool sums_to_one(const at::Tensor& output, std::int64_t dim, bool is_rounded) {
  if (output.size(dim) < 2 || output.lt(0).any().item<bool>()) return false;
  return output.sum(dim).sub(1).abs().le(is_rounded ? 5e-3 : 1e-3).all().item<bool>();
}

at::Tensor activated(const at::Tensor& logits, const ModelRecipe& recipe) {
  if (activation_of(recipe) == LossActivation::sigmoid) return logits.sigmoid();
  const auto dim = class_dim_of(logits, recipe);
  return dim ? logits.softmax(*dim) : logits;
}

/// Words of messages about the activation that the loss applies.
struct Words {
  std::string activation;
  std::string look;  // of its results
  std::string way_out;
};

Words words_for(LossActivation activation) {
  if (activation == LossActivation::sigmoid)
    return {"sigmoid", "numbers from 0 to 1 out of a sigmoid", "remove the sigmoid from the model"};
  return {"softmax", "numbers >= 0 that sum to 1 over the classes",
          "remove the softmax from the model, or use loss nll on log-probabilities"};
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// `model` is the sentence's beginning, which says that there are probabilities.
std::string double_activation(const Task& task, const std::string& model) {
  const ModelRecipe& recipe = task.recipe.model;
  const Words words = words_for(activation_of(recipe));
  return model + ", and the loss " + loss_name(recipe) + " takes the " + words.activation +
         " of it once more, which trains badly: " + words.way_out;
}

std::string known_warning(const Task& task, const ProbabilityOutput& output) {
  std::string model = "output " + quoted(output.name) + " of model " +
                      quoted(task.model->path().string()) + " comes from " + output.comes_from;
  if (!output.changed_by.empty()) {
    model += " and " + output.changed_by + " after it, so that there are no logits to train on";
  } else if (output.has_logits) {
    model += ", which is not over dimension " + std::to_string(task.recipe.model.class_dim) +
             " (model.class_dim)";
  }
  return double_activation(task, model);
}

std::string seen_warning(const Task& task) {
  return double_activation(task, "the output of model " + quoted(task.model->path().string()) +
                                     " is probabilities already (" +
                                     words_for(activation_of(task.recipe.model)).look + ")");
}

}  // namespace

ImportOptions import_options(const ModelRecipe& recipe) {
  return {
      .unfreeze = recipe.unfreeze, .output = recipe.output, .activation = activation_of(recipe)};
}

std::optional<bool> looks_like_probabilities(const at::Tensor& output, const Recipe& recipe) {
  const at::NoGradGuard no_grad;
  const LossActivation activation = activation_of(recipe.model);
  if (activation == LossActivation::none) return std::nullopt;
  if (!output.is_floating_point() || output.numel() == 0) return std::nullopt;
  if (activation == LossActivation::sigmoid) {
    return output.ge(0).logical_and(output.le(1)).all().item<bool>();
  }
  const auto dim = class_dim_of(output, recipe.model);
  return dim && sums_to_one(output, *dim, recipe.amp.dtype != AmpDType::off);
}

void check_logits(Task& task, const DataSet& data, std::span<const std::int64_t> samples) {
  const at::NoGradGuard no_grad;
  const Batch batch = data.read(samples);
  if (batch.empty()) return;  // all samples are left out
  const auto output = [&](bool logits) {
    task.model->give_logits(logits);
    seed_generator(static_cast<std::uint64_t>(task.recipe.seed), 0, 0, RandomStream::trial,
                   task.model->device());
    const at::Tensor result =
        predict(*task.model, task.inputs, task.criterion, data, batch).output.to(at::kFloat);
    task.model->settle_buffers();
    return result;
  };
  task.model->eval();
  const at::Tensor probabilities = output(false);
  const at::Tensor again = activated(output(true), task.recipe.model);
  // The same dimension gives equal numbers up to rounding, at most bfloat16's (8 bits).
  const bool fit = again.sizes() == probabilities.sizes() &&
                   at::allclose(again, probabilities, /*rtol=*/0.01, /*atol=*/1e-6,
                                /*equal_nan=*/true);
  task.model->give_logits(fit);
}

OutputAdvice output_advice(const Task& task, const Trial& trial) {
  const std::optional<ProbabilityOutput> known = task.model->origin().probabilities();
  if (task.model->gives_logits()) {
    return {.note = "the loss " + loss_name(task.recipe.model) + " is given the logits before " +
                    known->comes_from + "; the model that is written gives " + quoted(known->name) +
                    " as the file does",
            .warning = ""};
  }
  if (known) return {.note = "", .warning = known_warning(task, *known)};
  if (!trial.gives_probabilities.value_or(false)) return {};
  // Logits may well be between 0 and 1, but a sum of 1 is no accident.
  const bool is_sure =
      activation_of(task.recipe.model) == LossActivation::softmax || task.model->ends_in_sigmoid();
  return {.note = "", .warning = is_sure ? seen_warning(task) : ""};
}

}  // namespace decent
