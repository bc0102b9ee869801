#include "decent/task/criterion.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <cmath>
#include <optional>

#include "decent/core/error.h"
#include "decent/core/gpu_errors.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/data/source.h"
#include "decent/model/reason.h"

namespace decent {
namespace {

std::string describe(const at::Tensor& tensor) {
  return dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes());
}

// A class that is neither ignored nor one of `count`.
std::optional<std::int64_t> find_wrong_class(const at::Tensor& classes, std::int64_t ignored,
                                             std::int64_t count) {
  const at::Tensor counted = classes.masked_select(classes.ne(ignored));
  if (counted.numel() == 0) return std::nullopt;
  const auto least = counted.min().item<std::int64_t>();
  const auto most = counted.max().item<std::int64_t>();
  if (least < 0) return least;
  return most >= count ? std::optional(most) : std::nullopt;
}

// Advice on targets that would be classes except for their type or an extra dimension of 1.
std::string advice_on_classes(const at::Tensor& target, const std::vector<std::int64_t>& wanted) {
  std::vector<std::int64_t> shape = target.sizes().vec();
  const bool has_one_more = shape.size() == wanted.size() + 1 && shape.back() == 1;
  if (has_one_more) shape.pop_back();
  if (shape != wanted || target.is_complex()) return "";
  const bool integers = at::isIntegralType(target.scalar_type(), /*includeBool=*/false);
  const bool whole =
      integers || target.scalar_type() == at::kBool || target.eq(target.round()).all().item<bool>();
  if (!whole) return "";
  const std::string numpy =
      std::string("y") + (has_one_more ? "[..., 0]" : "") + (integers ? "" : ".astype('int64')");
  return ".\nThe targets are whole numbers: " + numpy + " in NumPy" +
         (integers ? "" : " or, of a csv source, y_type: class") + " makes classes of them";
}

[[noreturn]] void refuse_class(std::int64_t wrong, std::int64_t count) {
  throw WrongClass("the target has class " + std::to_string(wrong) + ", the model's output has " +
                       counted(count, "class", "classes") + ": 0" +
                       (count > 1 ? " to " + std::to_string(count - 1) : "") +
                       (wrong == kNoClass ? "; with model.ignore_index: 255, which in masks is no "
                                            "class, it does not count"
                                          : ""),
                   count);
}

}  // namespace

Criterion::Criterion(std::string_view loss, const ClassOptions& classes, const Options& own)
    : loss_(&loss_function(loss)), reduced_(loss_->make(own)), options_(classes) {
  if (!options_.weights.defined()) return;
  if (!loss_->takes_weights) {
    std::vector<std::string> names;
    for (const LossFunction& each : loss_functions())
      if (each.takes_weights) names.emplace_back(each.name);
    throw UserError("model.loss_weights: the loss " + std::string(loss) +
                    " takes none; these do: " + join(names));
  }
  if (options_.weights.sum().item<double>() <= 0)
    throw UserError("model.loss_weights: expected at least one number above 0");
}

Criterion::Criterion(const ModelRecipe& recipe)
    : Criterion(recipe.loss,
                {.ignore_index = recipe.ignore_index,
                 .class_dim = recipe.class_dim,
                 .weights = recipe.loss_weights ? at::tensor(*recipe.loss_weights, at::kDouble)
                                                : at::Tensor()},
                recipe.loss_options) {}

// The options, with weights on the output's device and of its dtype; they are moved only once.
const ClassOptions& Criterion::options_for(const at::Tensor& output) const {
  at::Tensor& weights = options_.weights;
  if (!weights.defined()) return options_;
  if (weights.numel() != output.size(-1)) {
    throw UserError("model.loss_weights: expected a number for each of the " +
                    counted(output.size(-1), "class", "classes") + " of the model's output, got " +
                    std::to_string(weights.numel()));
  }
  if (weights.device() != output.device() || weights.scalar_type() != output.scalar_type())
    weights = weights.to(output.device(), output.scalar_type());
  return options_;
}

void Criterion::refuse_mismatch(const at::Tensor& output, const at::Tensor& target,
                                const std::string& wanted) const {
  throw UserError("the model's output " + describe(output) + " and the target " + describe(target) +
                  " do not fit the loss " + std::string(loss_->name) + ": " + wanted);
}

// The dimension of the classes, counted from 0; the output may lack it.
std::int64_t Criterion::class_dim_of(const at::Tensor& output) const {
  return options_.class_dim < 0 ? options_.class_dim + output.dim() : options_.class_dim;
}

// The dimension of the classes, counted from 0.
std::int64_t Criterion::fitting_class_dim(const at::Tensor& output,
                                          const at::Tensor& target) const {
  const std::int64_t dim = class_dim_of(output);
  const bool integers = at::isIntegralType(target.scalar_type(), /*includeBool=*/false);
  std::vector<std::int64_t> without_classes = output.sizes().vec();
  const bool has_dim = dim >= 0 && dim < output.dim();
  if (has_dim) without_classes.erase(without_classes.begin() + dim);
  if (!has_dim || !output.is_floating_point() || !integers || target.sizes() != without_classes) {
    refuse_mismatch(
        output, target,
        "it wants floating-point scores with the classes in dimension " +
            std::to_string(options_.class_dim) +
            " (model.class_dim) and integer classes of the same shape without it" +
            (loss_->takes_probabilities ? ", or their probabilities, of the same shape" : "") +
            (has_dim ? advice_on_classes(target, without_classes) : ""));
  }
  return dim;
}

bool Criterion::are_probabilities(const at::Tensor& output, const at::Tensor& target) const {
  const std::int64_t dim = class_dim_of(output);
  return has_classes() && loss_->takes_probabilities && target.is_floating_point() &&
         output.is_floating_point() && target.sizes() == output.sizes() && dim >= 0 &&
         dim < output.dim();
}

Criterion::Fitted Criterion::fit_classes(const at::Tensor& output, const at::Tensor& target) const {
  const auto by_class = [&](const at::Tensor& tensor, std::int64_t dim) {
    return tensor.movedim(dim, -1).reshape({-1, tensor.size(dim)});
  };
  if (are_probabilities(output, target)) {
    if (options_.ignore_index >= 0) {
      throw UserError("model.ignore_index: the target " + describe(target) +
                      " holds probabilities, of which none is ignored; leave the key out");
    }
    const std::int64_t dim = class_dim_of(output);
    return {by_class(output, dim), by_class(target.to(output.scalar_type()), dim)};
  }
  const std::int64_t dim = fitting_class_dim(output, target);
  return {by_class(output, dim), target.reshape({-1}).to(at::kLong)};
}

Criterion::Fitted Criterion::fit_elements(const at::Tensor& output,
                                          const at::Tensor& target) const {
  const bool events = loss_->target == TargetKind::events;
  const bool numbers = !target.is_complex() && (events || target.scalar_type() != at::kBool);
  if (!output.is_floating_point() || !numbers || output.sizes() != target.sizes()) {
    refuse_mismatch(output, target,
                    events
                        ? "it wants floating-point logits and targets of 0 to 1 of the same shape"
                        : "it wants a floating-point output and numbers of the same shape");
  }
  return {output, target.to(output.scalar_type())};
}

at::Tensor Criterion::fit_own_loss(const at::Tensor& output) const {
  if (output.numel() == 1 && output.is_floating_point()) return output.reshape({});
  throw UserError("model.loss: with '" + std::string(loss_->name) +
                  "' forward must return the loss, one floating-point number; it returns " +
                  describe(output));
}

Criterion::Fitted Criterion::fit(const at::Tensor& output, const at::Tensor& target) const {
  if (!needs_target()) return {fit_own_loss(output), {}};
  return has_classes() ? fit_classes(output, target) : fit_elements(output, target);
}

void Criterion::explain_failure(const Fitted& fitted, const std::exception& error) const {
  const std::string message =
      "the loss " + std::string(loss_->name) + " fails: " + reason_of(error);
  if (const auto known = gpu_error_of(message)) known->raise(message);
  const std::int64_t count = fitted.output.size(-1);
  if (!fitted.target.is_floating_point()) {
    const auto wrong = find_wrong_class(fitted.target, options_.ignore_index, count);
    if (wrong) refuse_class(*wrong, count);
  }
  throw UserError(message);
}

// Classes out of range only show inside the loss; a search in each step would cost a pass over the
// targets.
at::Tensor Criterion::reduced(const Fitted& fitted, std::int64_t reduction) const {
  const ClassOptions& options = has_classes() ? options_for(fitted.output) : options_;
  const auto value = [&] { return reduced_(fitted.output, fitted.target, reduction, options); };
  if (!has_classes()) return value();
  try {
    return value();
  } catch (const std::exception& error) {
    explain_failure(fitted, error);
  }
}

// Whether a target is neither ignored nor of a class whose weight is 0.
bool Criterion::any_counts(const at::Tensor& target) const {
  if (!has_classes() || target.is_floating_point()) return true;
  const at::Tensor classes = target.to(at::kLong);  // a smaller type may not hold ignore_index
  const at::Tensor counted = classes.masked_select(classes.ne(options_.ignore_index));
  if (!options_.weights.defined()) return counted.numel() > 0;
  return options_.weights.index_select(0, counted).sum().item<double>() > 0;
}

MeanLoss Criterion::mean_loss(const at::Tensor& output, const at::Tensor& target) const {
  const Fitted fitted = fit(output, target);
  const auto read = [&](std::int64_t reduction) {
    const at::Tensor loss = reduced(fitted, reduction);
    return MeanLoss{loss, loss.item<double>()};
  };
  const MeanLoss loss = read(at::Reduction::Mean);
  // PyTorch divides 0 by 0 if no target counts.
  return std::isnan(loss.value) && !any_counts(fitted.target) ? read(at::Reduction::Sum) : loss;
}

at::Tensor Criterion::unread_mean_loss(const at::Tensor& output, const at::Tensor& target,
                                       const at::Tensor& on_host) const {
  return reduced(fit(output, target),
                 any_counts(on_host) ? at::Reduction::Mean : at::Reduction::Sum);
}

EvaluatedBatch Criterion::evaluate(const at::Tensor& output, const at::Tensor& target,
                                   std::int64_t samples) const {
  const Fitted fitted = fit(output, target);
  const at::Tensor loss = reduced(fitted, at::Reduction::Sum).to(at::kDouble);
  EvaluatedBatch batch{.kind = loss_->target,
                       .output = output,
                       .target = target,
                       .counts = {},
                       .loss = loss,
                       .loss_weight = {},
                       .elements = {}};
  if (!needs_target()) {
    batch.loss = loss.mul(static_cast<double>(samples));
    batch.elements = static_cast<double>(samples);
  } else if (has_classes() && fitted.target.is_floating_point()) {
    batch.output = fitted.output;
    batch.target = fitted.target.argmax(-1);
    batch.counts = at::ones_like(batch.target, at::kBool);
    batch.elements = static_cast<double>(batch.target.numel());
  } else if (has_classes()) {
    batch.output = fitted.output;
    batch.target = fitted.target;
    batch.counts = fitted.target.ne(options_.ignore_index);
    batch.elements = batch.counts.sum();
  } else {
    batch.elements = static_cast<double>(target.numel());
  }
  batch.loss_weight = batch.elements;
  if (options_.weights.defined() && !fitted.target.is_floating_point()) {
    const at::Tensor counted = fitted.target.masked_select(batch.counts);
    batch.loss_weight = options_.weights.to(at::kDouble).index_select(0, counted).sum();
  }
  return batch;
}

std::string Criterion::doubt(const at::Tensor& output, const at::Tensor& target) const {
  if (!may_doubt()) return "";
  const Fitted fitted = fit(output, target);
  return loss_->doubt(fitted.output, fitted.target);
}

void Criterion::check_classes(const at::Tensor& output, const at::Tensor& target) const {
  if (const auto count = class_count(output, target)) check_classes(target, *count);
}

std::optional<std::int64_t> Criterion::class_count(const at::Tensor& output,
                                                   const at::Tensor& target) const {
  if (!has_classes() || are_probabilities(output, target)) return std::nullopt;
  return output.size(fitting_class_dim(output, target));
}

void Criterion::check_classes(const at::Tensor& target, std::int64_t count) const {
  const auto wrong = find_wrong_class(target.to(at::kLong), options_.ignore_index, count);
  if (wrong) refuse_class(*wrong, count);
}

}  // namespace decent
