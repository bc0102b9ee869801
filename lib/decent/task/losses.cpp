#include "decent/task/losses.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <array>
#include <sstream>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using at::Tensor;

Tensor cross_entropy(const Tensor& logits, const Tensor& classes, std::int64_t reduction,
                     const LossOptions& options) {
  return at::cross_entropy_loss(logits, classes, options.weights, reduction, options.ignore_index,
                                options.label_smoothing);
}

Tensor nll(const Tensor& log_probabilities, const Tensor& classes, std::int64_t reduction,
           const LossOptions& options) {
  return at::nll_loss_nd(log_probabilities, classes, options.weights, reduction,
                         options.ignore_index);
}

// Lin and others, "Focal Loss for Dense Object Detection" (arXiv 1708.02002), of several classes:
// (1 - p)^gamma times the cross entropy, p being the probability of the target's class.
Tensor focal(const Tensor& logits, const Tensor& classes, std::int64_t reduction,
             const LossOptions& options) {
  const Tensor log_probabilities = logits.log_softmax(-1);
  const Tensor still_wrong = (1 - log_probabilities.exp()).clamp_min(0).pow(options.focal_gamma);
  return at::nll_loss_nd(log_probabilities * still_wrong, classes, options.weights, reduction,
                         options.ignore_index);
}

// The Kullback-Leibler divergence of the output's softmax from the target, a mean over samples as
// with reduction "batchmean". The softmax of log-probabilities gives the probabilities.
Tensor kl(const Tensor& logits, const Tensor& target, std::int64_t reduction,
          const LossOptions& options) {
  const Tensor log_probabilities = logits.log_softmax(-1);
  if (!target.is_floating_point())
    return at::nll_loss_nd(log_probabilities, target, {}, reduction, options.ignore_index);
  const Tensor sum = at::kl_div(log_probabilities, target, at::Reduction::Sum);
  return reduction == at::Reduction::Sum ? sum : sum / static_cast<double>(target.size(0));
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

// Least and largest, as float64.
std::pair<double, double> range_of(const Tensor& values) {
  const auto [least, most] = values.detach().to(at::kFloat).aminmax();
  return {least.item<double>(), most.item<double>()};
}

std::string range_text(const std::pair<double, double>& range) {
  const auto number = [](double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  };
  return number(range.first) + " to " + number(range.second);
}

std::string no_events(const Tensor&, const Tensor& target) {
  if (target.numel() == 0) return "";
  const auto range = range_of(target);
  if (range.first >= 0 && range.second <= 1) return "";
  std::string text = "the targets go from " + range_text(range) +
                     ", and bce_with_logits means probabilities, 0 to 1";
  if (range.first >= 0 && range.second == 255)
    text +=
        ".\nA transform makes 0 and 255 to 0 and 1: to_float: {field: y} of uint8, normalize: "
        "{field: y, mean: 0, std: 255} of float32";
  if (range.first == -1 && range.second == 1)
    text += ".\nThe transform normalize: {field: y, mean: -1, std: 2} makes -1 and 1 to 0 and 1";
  return text;
}

// The log-softmax of float16 may round to a little more than 0.
std::string no_log_probabilities(const Tensor& output, const Tensor&) {
  constexpr double kRounding = 1e-2;
  if (output.numel() == 0) return "";
  const auto range = range_of(output);
  if (!(range.second > kRounding)) return "";
  return "the model's output goes from " + range_text(range) +
         ", and nll means log-probabilities, which are at most 0; for scores there is the loss "
         "cross_entropy";
}

std::string no_probabilities(const Tensor&, const Tensor& target) {
  constexpr double kRounding = 1e-2;  // rounding of sums in bfloat16
  if (!target.is_floating_point() || target.numel() == 0) return "";
  const auto sums = range_of(target.sum(-1, /*keepdim=*/false, at::kFloat));
  const bool adds_up = sums.first >= 1 - kRounding && sums.second <= 1 + kRounding;
  if (adds_up && range_of(target).first >= 0) return "";
  return "the targets go from " + range_text(range_of(target)) + " and sum to " + range_text(sums) +
         " over the classes, and kl means probabilities, which sum to 1";
}

Tensor own(const Tensor& output, const Tensor&, std::int64_t, const LossOptions&) { return output; }

constexpr auto kLosses = std::to_array<LossFunction>({
    {.name = "cross_entropy",
     .target = TargetKind::classes,
     .activation = LossActivation::softmax,
     .takes_probabilities = true,
     .takes_weights = true,
     .reduced = cross_entropy},
    {.name = "nll",
     .target = TargetKind::classes,
     .zeros_know_nothing = false,
     .takes_weights = true,
     .doubt = no_log_probabilities,
     .reduced = nll},
    {.name = "focal",
     .target = TargetKind::classes,
     .activation = LossActivation::softmax,
     .takes_weights = true,
     .reduced = focal},
    {.name = "kl",
     .target = TargetKind::classes,
     .activation = LossActivation::softmax,
     .takes_probabilities = true,
     .doubt = no_probabilities,
     .reduced = kl},
    {.name = "mse", .target = TargetKind::numbers, .reduced = mse},
    {.name = "l1", .target = TargetKind::numbers, .reduced = l1},
    {.name = "huber", .target = TargetKind::numbers, .reduced = huber},
    {.name = "bce_with_logits",
     .target = TargetKind::events,
     .activation = LossActivation::sigmoid,
     .doubt = no_events,
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
