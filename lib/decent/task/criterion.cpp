#include "decent/task/criterion.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/reason.h"

namespace decent {
namespace {

std::string describe(const at::Tensor& tensor) {
  return dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes());
}

[[noreturn]] void misfit(LossName loss, const at::Tensor& output, const at::Tensor& target,
                         const std::string& wanted) {
  throw UserError("the model's output " + describe(output) + " and the target " + describe(target) +
                  " do not fit the loss " + std::string(name_of(loss)) + ": " + wanted);
}

at::Tensor own_loss(const at::Tensor& output) {
  if (output.numel() == 1 && output.is_floating_point()) return output.reshape({});
  throw UserError(
      "model.loss: with 'output' forward must return the loss, one floating-point "
      "number; it returns " +
      describe(output));
}

void count_numbers(const at::Tensor& output, const at::Tensor& target, UnreadSums& sums) {
  const at::Tensor truth = target.to(at::kDouble);
  const at::Tensor error = output.to(at::kDouble) - truth;
  sums.set(&EvaluationSums::numbers, static_cast<double>(target.numel()));
  if (target.numel() == 0) return;
  const at::Tensor mean = truth.mean();
  sums.add(&EvaluationSums::squared_error, error.square().sum());
  sums.add(&EvaluationSums::absolute_error, error.abs().sum());
  sums.add(&EvaluationSums::target_mean, mean);
  sums.add(&EvaluationSums::target_squares, (truth - mean).square().sum());
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

[[noreturn]] void refuse_class(std::int64_t wrong, std::int64_t count) {
  throw UserError("the target has class " + std::to_string(wrong) + ", the model's output has " +
                  counted(count, "class", "classes") + ": 0" +
                  (count > 1 ? " to " + std::to_string(count - 1) : ""));
}

}  // namespace

// Logits or log probabilities, the classes, and the loss for messages.
struct Criterion::Flattened {
  at::Tensor scores;   // [n, C]
  at::Tensor classes;  // [n], int64
};

EvaluationSums& EvaluationSums::operator+=(const EvaluationSums& other) {
  loss += other.loss;
  elements += other.elements;
  correct += other.correct;
  correct5 += other.correct5;
  labels += other.labels;
  squared_error += other.squared_error;
  absolute_error += other.absolute_error;
  if (other.numbers == 0) return *this;
  const double both = numbers + other.numbers;
  const double apart = other.target_mean - target_mean;
  target_squares += other.target_squares + apart * apart * numbers * other.numbers / both;
  target_mean += apart * other.numbers / both;
  numbers = both;
  return *this;
}

void UnreadSums::add(double EvaluationSums::*sum, const at::Tensor& value) {
  sums_.push_back(sum);
  values_.push_back(value.to(at::kDouble));
}

EvaluationSums UnreadSums::read() const {
  EvaluationSums result = known_;
  const at::Tensor values = at::stack(values_).to(at::kCPU);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    result.*sums_[i] = values.const_data_ptr<double>()[i];
  }
  return result;
}

Criterion::Criterion(const ModelRecipe& recipe)
    : options_{.loss = recipe.loss,
               .label_smoothing = recipe.label_smoothing,
               .ignore_index = recipe.ignore_index,
               .class_dim = recipe.class_dim} {}

bool Criterion::has_classes() const {
  return options_.loss == LossName::cross_entropy || options_.loss == LossName::nll;
}

bool Criterion::classifies() const {
  return has_classes() || options_.loss == LossName::bce_with_logits;
}

bool Criterion::regresses() const {
  return options_.loss == LossName::mse || options_.loss == LossName::l1 ||
         options_.loss == LossName::huber;
}

// The dimension of the classes, counted from 0.
std::int64_t Criterion::fitting_class_dim(const at::Tensor& output,
                                          const at::Tensor& target) const {
  const std::int64_t dims = output.dim();
  const std::int64_t dim = options_.class_dim < 0 ? options_.class_dim + dims : options_.class_dim;
  const bool integers = at::isIntegralType(target.scalar_type(), /*includeBool=*/false);
  std::vector<std::int64_t> without_classes = output.sizes().vec();
  const bool has_dim = dim >= 0 && dim < dims;
  if (has_dim) without_classes.erase(without_classes.begin() + dim);
  if (!has_dim || !output.is_floating_point() || !integers || target.sizes() != without_classes) {
    misfit(options_.loss, output, target,
           "it wants floating-point scores with the classes in dimension " +
               std::to_string(options_.class_dim) +
               " (model.class_dim) and integer classes of the same shape without it");
  }
  return dim;
}

Criterion::Flattened Criterion::flatten_classes(const at::Tensor& output,
                                                const at::Tensor& target) const {
  const std::int64_t dim = fitting_class_dim(output, target);
  return {output.movedim(dim, -1).reshape({-1, output.size(dim)}),
          target.reshape({-1}).to(at::kLong)};
}

namespace {

// Out of range classes only show inside the loss; looking for them each step would cost a pass over
// the targets.
[[noreturn]] void explain_failure(LossName loss, const at::Tensor& scores,
                                  const at::Tensor& classes, std::int64_t ignored,
                                  const std::exception& error) {
  const auto wrong = find_wrong_class(classes, ignored, scores.size(-1));
  if (wrong) refuse_class(*wrong, scores.size(-1));
  throw UserError("the loss " + std::string(name_of(loss)) + " fails: " + reason_of(error));
}

}  // namespace

at::Tensor Criterion::class_loss(const Flattened& flat, std::int64_t reduction) const {
  try {
    if (options_.loss == LossName::nll) {
      return at::nll_loss_nd(flat.scores, flat.classes, {}, reduction, options_.ignore_index);
    }
    return at::cross_entropy_loss(flat.scores, flat.classes, {}, reduction, options_.ignore_index,
                                  options_.label_smoothing);
  } catch (const std::exception& error) {
    explain_failure(options_.loss, flat.scores, flat.classes, options_.ignore_index, error);
  }
}

at::Tensor Criterion::number_loss(const at::Tensor& output, const at::Tensor& target,
                                  std::int64_t reduction) const {
  const bool binary = options_.loss == LossName::bce_with_logits;
  const bool numbers = !target.is_complex() && (binary || target.scalar_type() != at::kBool);
  if (!output.is_floating_point() || !numbers || output.sizes() != target.sizes()) {
    misfit(options_.loss, output, target,
           binary ? "it wants floating-point logits and targets of 0 to 1 of the same shape"
                  : "it wants a floating-point output and numbers of the same shape");
  }
  const at::Tensor truth = target.to(output.scalar_type());
  switch (options_.loss) {
    case LossName::mse:
      return at::mse_loss(output, truth, reduction);
    case LossName::l1:
      return at::l1_loss(output, truth, reduction);
    case LossName::huber:
      return at::huber_loss(output, truth, reduction, /*delta=*/1.0);
    default:
      return at::binary_cross_entropy_with_logits(output, truth, {}, {}, reduction);
  }
}

at::Tensor Criterion::reduced_loss(const at::Tensor& output, const at::Tensor& target,
                                   std::int64_t reduction) const {
  if (!needs_target()) return own_loss(output);
  if (!has_classes()) return number_loss(output, target, reduction);
  return class_loss(flatten_classes(output, target), reduction);
}

MeanLoss Criterion::mean_loss(const at::Tensor& output, const at::Tensor& target) const {
  const auto read = [&](std::int64_t reduction) {
    const at::Tensor loss = reduced_loss(output, target, reduction);
    return MeanLoss{loss, loss.item<double>()};
  };
  const MeanLoss loss = read(at::Reduction::Mean);
  // PyTorch divides 0 by 0 where all targets are ignored.
  const bool nothing_counts = std::isnan(loss.value) && has_classes() &&
                              target.to(at::kLong).eq(options_.ignore_index).all().item<bool>();
  return nothing_counts ? read(at::Reduction::Sum) : loss;
}

void Criterion::count_classes(const at::Tensor& output, const at::Tensor& target,
                              UnreadSums& sums) const {
  const Flattened flat = flatten_classes(output, target);
  const at::Tensor counts = flat.classes.ne(options_.ignore_index);
  const at::Tensor labels = counts.sum();
  sums.add(&EvaluationSums::labels, labels);
  sums.add(&EvaluationSums::elements, labels);
  const at::Tensor right = flat.scores.argmax(-1).eq(flat.classes).logical_and(counts);
  sums.add(&EvaluationSums::correct, right.sum());
  const std::int64_t most = std::min<std::int64_t>(5, flat.scores.size(-1));
  const at::Tensor highest = std::get<1>(flat.scores.topk(most, -1));
  const at::Tensor among = highest.eq(flat.classes.unsqueeze(-1)).any(-1).logical_and(counts);
  sums.add(&EvaluationSums::correct5, among.sum());
}

UnreadSums Criterion::evaluate(const at::Tensor& output, const at::Tensor& target,
                               std::int64_t samples) const {
  UnreadSums sums;
  const at::Tensor loss = reduced_loss(output, target, at::Reduction::Sum).to(at::kDouble);
  if (!needs_target()) {
    const auto elements = static_cast<double>(samples);
    sums.set(&EvaluationSums::elements, elements);
    sums.add(&EvaluationSums::loss, loss.mul(elements));
    return sums;
  }
  const auto elements = static_cast<double>(target.numel());
  sums.add(&EvaluationSums::loss, loss);
  sums.set(&EvaluationSums::elements, elements);
  if (has_classes()) count_classes(output, target, sums);
  if (regresses()) count_numbers(output, target, sums);
  if (options_.loss == LossName::bce_with_logits) {
    sums.set(&EvaluationSums::labels, elements);
    sums.add(&EvaluationSums::correct, output.gt(0).eq(target.to(at::kDouble).gt(0.5)).sum());
  }
  return sums;
}

void Criterion::check_classes(const at::Tensor& output, const at::Tensor& target) const {
  if (!has_classes()) return;
  const std::int64_t count = output.size(fitting_class_dim(output, target));
  const auto wrong = find_wrong_class(target.to(at::kLong), options_.ignore_index, count);
  if (wrong) refuse_class(*wrong, count);
}

}  // namespace decent
