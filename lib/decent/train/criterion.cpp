#include "decent/train/criterion.h"

#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>

#include <stdexcept>

#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

// Targets with this class do not count, as in torch.nn.CrossEntropyLoss.
constexpr std::int64_t kIgnoredClass = -100;

std::string describe(const at::Tensor& tensor) {
  return dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes());
}

[[noreturn]] void misfit(LossName loss, const at::Tensor& output, const at::Tensor& target,
                         const std::string& wanted) {
  throw UserError("the model's output " + describe(output) + " and the target " + describe(target) +
                  " do not fit the loss " + std::string(name_of(loss)) + ": " + wanted);
}

struct Flattened {
  at::Tensor logits;   // [n, C]
  at::Tensor classes;  // [n], int64
};

Flattened flatten_classes(const at::Tensor& output, const at::Tensor& target) {
  const bool integers = at::isIntegralType(target.scalar_type(), /*includeBool=*/false);
  const bool shapes_fit =
      output.dim() >= 1 && output.sizes().slice(0, output.dim() - 1) == target.sizes();
  if (!output.is_floating_point() || !integers || !shapes_fit) {
    misfit(LossName::cross_entropy, output, target,
           "it wants floating-point logits [.., classes] and integer classes [..]");
  }
  return {output.reshape({-1, output.size(-1)}), target.reshape({-1}).to(at::kLong)};
}

// Out of range classes only show inside the loss; looking for them each step would cost a pass over
// the targets.
[[noreturn]] void explain_failure(const Flattened& flat, const std::exception& error) {
  const at::Tensor counted = flat.classes.masked_select(flat.classes.ne(kIgnoredClass));
  if (counted.numel() > 0) {
    const auto least = counted.min().item<std::int64_t>();
    const auto most = counted.max().item<std::int64_t>();
    const std::int64_t classes = flat.logits.size(-1);
    if (least < 0 || most >= classes) {
      throw UserError("the target has class " + std::to_string(least < 0 ? least : most) +
                      ", the model's output has " + std::to_string(classes) + " classes: 0 to " +
                      std::to_string(classes - 1));
    }
  }
  const std::string text = error.what();
  throw UserError("the loss cross_entropy fails: " + text.substr(0, text.find('\n')));
}

at::Tensor cross_entropy(const Flattened& flat, std::int64_t reduction) {
  try {
    return at::cross_entropy_loss(flat.logits, flat.classes, {}, reduction, kIgnoredClass);
  } catch (const std::exception& error) {
    explain_failure(flat, error);
  }
}

at::Tensor mse(const at::Tensor& output, const at::Tensor& target, std::int64_t reduction) {
  const bool numbers = !target.is_complex() && target.scalar_type() != at::kBool;
  if (!output.is_floating_point() || !numbers || output.sizes() != target.sizes()) {
    misfit(LossName::mse, output, target,
           "it wants a floating-point output and numbers of the same shape");
  }
  return at::mse_loss(output, target.to(output.scalar_type()), reduction);
}

}  // namespace

EvaluationSums& EvaluationSums::operator+=(const EvaluationSums& other) {
  loss += other.loss;
  elements += other.elements;
  correct += other.correct;
  labels += other.labels;
  return *this;
}

at::Tensor Criterion::reduced_loss(const at::Tensor& output, const at::Tensor& target,
                                   std::int64_t reduction) const {
  switch (loss_) {
    case LossName::cross_entropy:
      return cross_entropy(flatten_classes(output, target), reduction);
    case LossName::mse:
      return mse(output, target, reduction);
    default:
      throw std::logic_error("the recipe loader let an unsupported loss pass");
  }
}

at::Tensor Criterion::mean_loss(const at::Tensor& output, const at::Tensor& target) const {
  return reduced_loss(output, target, at::Reduction::Mean);
}

EvaluationSums Criterion::evaluate(const at::Tensor& output, const at::Tensor& target) const {
  EvaluationSums sums;
  sums.loss = reduced_loss(output, target, at::Reduction::Sum).item<double>();
  sums.elements = static_cast<double>(target.numel());
  if (!classifies()) return sums;
  const Flattened flat = flatten_classes(output, target);
  const at::Tensor counts = flat.classes.ne(kIgnoredClass);
  const at::Tensor right = flat.logits.argmax(-1).eq(flat.classes).logical_and(counts);
  sums.labels = counts.sum().item<double>();
  sums.elements = sums.labels;
  sums.correct = right.sum().item<double>();
  return sums;
}

}  // namespace decent
