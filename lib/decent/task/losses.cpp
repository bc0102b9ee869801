#include "decent/task/losses.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <array>
#include <sstream>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/option_table.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using at::Tensor;

struct CrossEntropy {
  struct Options {
    double label_smoothing = 0;
  };
  static Tensor reduced(const Options& own, const Tensor& logits, const Tensor& target,
                        std::int64_t reduction, const ClassOptions& classes) {
    return at::cross_entropy_loss(logits, target, classes.weights, reduction, classes.ignore_index,
                                  own.label_smoothing);
  }
};

constexpr std::array kCrossEntropyOptions = {Option<CrossEntropy::Options>{
    "label_smoothing", "Label smoothing", &CrossEntropy::Options::label_smoothing, within(0, 1)}};

Tensor nll(const Tensor& log_probabilities, const Tensor& target, std::int64_t reduction,
           const ClassOptions& classes) {
  return at::nll_loss_nd(log_probabilities, target, classes.weights, reduction,
                         classes.ignore_index);
}

// Lin and others, "Focal Loss for Dense Object Detection" (arXiv 1708.02002), of several classes:
// (1 - p)^gamma times the cross entropy, p being the probability of the target's class.
struct Focal {
  struct Options {
    double focal_gamma = 2;
  };
  static Tensor reduced(const Options& own, const Tensor& logits, const Tensor& target,
                        std::int64_t reduction, const ClassOptions& classes) {
    const Tensor log_probabilities = logits.log_softmax(-1);
    const Tensor still_wrong = (1 - log_probabilities.exp()).clamp_min(0).pow(own.focal_gamma);
    return at::nll_loss_nd(log_probabilities * still_wrong, target, classes.weights, reduction,
                           classes.ignore_index);
  }
};

constexpr std::array kFocalOptions = {
    Option<Focal::Options>{"focal_gamma",
                           "How strongly targets that the model already predicts well are played "
                           "down; 0 makes the loss cross_entropy",
                           &Focal::Options::focal_gamma, at_least(0)}};

// The Kullback-Leibler divergence of the output's softmax from the target, a mean over samples as
// with reduction "batchmean". The softmax of log-probabilities gives the probabilities.
Tensor kl(const Tensor& logits, const Tensor& target, std::int64_t reduction,
          const ClassOptions& classes) {
  const Tensor log_probabilities = logits.log_softmax(-1);
  if (!target.is_floating_point())
    return at::nll_loss_nd(log_probabilities, target, {}, reduction, classes.ignore_index);
  const Tensor sum = at::kl_div(log_probabilities, target, at::Reduction::Sum);
  return reduction == at::Reduction::Sum ? sum : sum / static_cast<double>(target.size(0));
}

Tensor mse(const Tensor& output, const Tensor& target, std::int64_t reduction,
           const ClassOptions&) {
  return at::mse_loss(output, target, reduction);
}

Tensor l1(const Tensor& output, const Tensor& target, std::int64_t reduction, const ClassOptions&) {
  return at::l1_loss(output, target, reduction);
}

Tensor huber(const Tensor& output, const Tensor& target, std::int64_t reduction,
             const ClassOptions&) {
  return at::huber_loss(output, target, reduction, /*delta=*/1.0);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& probabilities, std::int64_t reduction,
                       const ClassOptions&) {
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

Tensor own(const Tensor& output, const Tensor&, std::int64_t, const ClassOptions&) {
  return output;
}

// The `make` of losses with options, and of those without.
template <class Loss, const auto& kOptions>
ReducedLoss with_options(const Options& given) {
  return
      [own = options_from(given, kOptions)](const Tensor& output, const Tensor& target,
                                            std::int64_t reduction, const ClassOptions& classes) {
        return Loss::reduced(own, output, target, reduction, classes);
      };
}

template <Tensor (*loss)(const Tensor&, const Tensor&, std::int64_t, const ClassOptions&)>
ReducedLoss without_options(const Options&) {
  return loss;
}

std::vector<LossFunction> make_losses() {
  return {
      {.name = "cross_entropy",
       .target = TargetKind::classes,
       .activation = LossActivation::softmax,
       .takes_probabilities = true,
       .takes_weights = true,
       .keys = keys_of(kCrossEntropyOptions),
       .make = with_options<CrossEntropy, kCrossEntropyOptions>},
      {.name = "nll",
       .target = TargetKind::classes,
       .zeros_know_nothing = false,
       .takes_weights = true,
       .doubt = no_log_probabilities,
       .make = without_options<nll>},
      {.name = "focal",
       .target = TargetKind::classes,
       .activation = LossActivation::softmax,
       .takes_weights = true,
       .keys = keys_of(kFocalOptions),
       .make = with_options<Focal, kFocalOptions>},
      {.name = "kl",
       .target = TargetKind::classes,
       .activation = LossActivation::softmax,
       .takes_probabilities = true,
       .doubt = no_probabilities,
       .make = without_options<kl>},
      {.name = "mse", .target = TargetKind::numbers, .make = without_options<mse>},
      {.name = "l1", .target = TargetKind::numbers, .make = without_options<l1>},
      {.name = "huber", .target = TargetKind::numbers, .make = without_options<huber>},
      {.name = "bce_with_logits",
       .target = TargetKind::events,
       .activation = LossActivation::sigmoid,
       .doubt = no_events,
       .make = without_options<bce_with_logits>},
      {.name = "output",
       .target = TargetKind::none,
       .zeros_know_nothing = false,
       .make = without_options<own>},
  };
}

}  // namespace

const std::vector<LossFunction>& loss_functions() {
  static const std::vector<LossFunction> losses = make_losses();
  return losses;
}

const LossFunction& loss_function(std::string_view name) {
  if (const LossFunction* found = find_named(loss_functions(), name)) return *found;
  throw UserError("unknown loss '" + std::string(name) +
                  "'; valid: " + join(names_in(loss_functions())));
}

}  // namespace decent
