#include "decent/task/predicted.h"

#include <ATen/Functions.h>

#include <string>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/task/scalings.h"

namespace decent {
namespace {

// Functions of half-precision outputs are computed in float32.
at::Tensor wide(const at::Tensor& output) {
  return output.scalar_type() == at::kDouble ? output : output.to(at::kFloat);
}

Predicted on_host(const Predicted& predicted) {
  const auto host = [](const at::Tensor& tensor, at::ScalarType type) {
    return tensor.defined() ? tensor.to(at::kCPU, type).contiguous() : tensor;
  };
  return {.output = host(predicted.output, at::kFloat),
          .classes = host(predicted.classes, at::kLong),
          .probability = host(predicted.probability, at::kFloat)};
}

std::string described(const at::Tensor& output) {
  return "the model's output " + dtype_text(output.scalar_type()) + shape_text(output.sizes());
}

}  // namespace

OutputReader::OutputReader(const Task& task, bool are_probabilities)
    : task_(task),
      are_probabilities_(are_probabilities),
      scalings_(normalizations_of(task.recipe.data.transforms_of_evaluation(),
                                  task.recipe.model.target)) {}

void OutputReader::check(const at::Tensor& output, std::int64_t samples) const {
  if (!output.is_floating_point()) {
    throw UserError(described(output) + " does not fit the loss " +
                    std::string(task_.criterion.loss().name) + ": it wants floating-point numbers");
  }
  if (output.dim() > 0 && output.size(0) == samples) return;
  throw UserError(described(output) +
                  " is not of single samples: its first dimension must be that " +
                  "of the batch, which has " + counted(samples, "sample"));
}

std::int64_t OutputReader::class_dim(const at::Tensor& output) const {
  const std::int64_t given = task_.recipe.model.class_dim;
  const std::int64_t dim = given < 0 ? given + output.dim() : given;
  if (dim > 0 && dim < output.dim() && output.size(dim) > 0) return dim;
  throw UserError(described(output) + " does not fit the loss " +
                  std::string(task_.criterion.loss().name) +
                  ": it wants scores with the classes in dimension " + std::to_string(given) +
                  " (model.class_dim), after that of the samples");
}

Predicted OutputReader::of_classes(const at::Tensor& output) const {
  const std::int64_t dim = class_dim(output);
  at::Tensor probabilities = wide(output);
  if (!are_probabilities_) {
    const bool logits = task_.criterion.loss().activation == LossActivation::softmax;
    probabilities = logits ? probabilities.softmax(dim) : probabilities.exp();
  }
  const at::Tensor classes = output.argmax(dim, /*keepdim=*/true);
  return {.output = output,
          .classes = classes.squeeze(dim),
          .probability = probabilities.gather(dim, classes).squeeze(dim)};
}

Predicted OutputReader::of_events(const at::Tensor& output) const {
  const at::Tensor numbers = wide(output);
  return {.output = output,
          .classes = numbers.gt(are_probabilities_ ? 0.5 : 0.0),
          .probability = are_probabilities_ ? numbers : numbers.sigmoid()};
}

Predicted OutputReader::read(const at::Tensor& output, std::int64_t samples) const {
  check(output, samples);
  const TargetKind kind = task_.criterion.loss().target;
  if (kind == TargetKind::classes) return on_host(of_classes(output));
  if (kind == TargetKind::events) return on_host(of_events(output));
  return on_host({.output = scalings_.empty() ? output : in_original_units(output, scalings_),
                  .classes = {},
                  .probability = {}});
}

std::int64_t OutputReader::classes_of(const at::Tensor& output) const {
  return task_.criterion.has_classes() ? output.size(class_dim(output)) : 0;
}

bool gives_probabilities(const Task& task, const Trial& trial) {
  if (!trial.gives_probabilities.value_or(false)) return false;
  // Logits may well be between 0 and 1, but a sum of 1 is no accident.
  return task.criterion.loss().activation == LossActivation::softmax ||
         task.model->ends_in_sigmoid() || task.model->origin().probabilities().has_value();
}

}  // namespace decent
