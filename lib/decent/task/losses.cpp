#include "decent/task/losses.h"

#include <ATen/Functions.h>

#include <array>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using at::Tensor;

Tensor cross_entropy(const Tensor& logits, const Tensor& classes, std::int64_t reduction,
                     const LossOptions& options) {
  return at::cross_entropy_loss(logits, classes, /*weight=*/{}, reduction, options.ignore_index,
                                options.label_smoothing);
}

Tensor nll(const Tensor& log_probabilities, const Tensor& classes, std::int64_t reduction,
           const LossOptions& options) {
  return at::nll_loss_nd(log_probabilities, classes, /*weight=*/{}, reduction,
                         options.ignore_index);
}

Tensor mse(const Tensor& output, const Tensor& target, std::int64_t reduction, const LossOptions&) {
  return at::mse_loss(output, target, reduction);
}

Tensor l1(const Tensor& output, const Tensor& target, std::int64_t reduction, const LossOptions&) {
  return at::l1_loss(output, target, reduction);
}

Tensor huber(const Tensor& output, const Tensor& target, std::int64_t reduction,
             const LossOptions&) {
  return at::huber_loss(output, target, reduction, /*delta=*/1.0);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& probabilities, std::int64_t reduction,
                       const LossOptions&) {
  return at::binary_cross_entropy_with_logits(logits, probabilities, /*weight=*/{},
                                              /*pos_weight=*/{}, reduction);
}

Tensor own(const Tensor& output, const Tensor&, std::int64_t, const LossOptions&) { return output; }

constexpr auto kLosses = std::to_array<LossFunction>({
    {.name = "cross_entropy",
     .target = TargetKind::classes,
     .activation = LossActivation::softmax,
     .takes_probabilities = true,
     .reduced = cross_entropy},
    {.name = "nll", .target = TargetKind::classes, .zeros_know_nothing = false, .reduced = nll},
    {.name = "mse", .target = TargetKind::numbers, .reduced = mse},
    {.name = "l1", .target = TargetKind::numbers, .reduced = l1},
    {.name = "huber", .target = TargetKind::numbers, .reduced = huber},
    {.name = "bce_with_logits",
     .target = TargetKind::events,
     .activation = LossActivation::sigmoid,
     .reduced = bce_with_logits},
    {.name = "output", .target = TargetKind::none, .zeros_know_nothing = false, .reduced = own},
});

}  // namespace

std::span<const LossFunction> loss_functions() { return kLosses; }

const LossFunction& loss_function(std::string_view name) {
  for (const LossFunction& loss : kLosses)
    if (loss.name == name) return loss;
  throw UserError("unknown loss '" + std::string(name) + "'; valid: " + join(loss_names()));
}

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const LossFunction& loss : kLosses) names.emplace_back(loss.name);
  return names;
}

}  // namespace decent
