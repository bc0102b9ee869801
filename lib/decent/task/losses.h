#pragma once
// The losses of model.loss: each is a row of the table in losses.cpp, and nothing else names one.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/model/import_options.h"

namespace decent {

/// What a loss compares the model's output with. Each metric goes with some of these.
enum class TargetKind {
  classes,  // one class of several: integers, of the output's shape without the classes' dimension;
            // or the probabilities of all: of the output's shape
  events,   // how probable each of several events is, 0 to 1: of the output's shape
  numbers,  // of the output's shape
  none,     // the model's output is the loss itself
};

/// The keys of the recipe's section `model` that change a loss.
struct LossOptions {
  double label_smoothing = 0;        // cross_entropy
  std::int64_t ignore_index = -100;  // classes: targets of this class do not count
  std::int64_t class_dim = -1;       // classes: their dimension in the output
  double focal_gamma = 2;            // focal
  /// A weight for each class, floating [C]; undefined: all are 1. Only for rows that take weights.
  at::Tensor weights = {};
};

/// A row of the table.
struct LossFunction {
  std::string_view name;  // as model.loss has it
  TargetKind target = TargetKind::numbers;
  /// The function that the loss applies to the output first. A model that ends with it would apply
  /// it twice; see probabilities.h.
  LossActivation activation = LossActivation::none;
  /// Whether a model that knows nothing gives zeros. As log-probabilities, zeros would say that
  /// every class is certain.
  bool zeros_know_nothing = true;
  /// For classes: whether targets may be the probabilities of all classes.
  bool takes_probabilities = false;
  /// For classes: whether each may have a weight.
  bool takes_weights = false;

  /// A sentence that says why the loss of this batch means nothing although PyTorch computes it;
  /// empty if all is well. Null: it always means something.
  std::string (*doubt)(const at::Tensor& output, const at::Tensor& target) = nullptr;
  /// The loss as a scalar with gradient. `reduction` is one of at::Reduction: Mean, or Sum, which
  /// is the mean times the number of elements that count (targets that are not ignored, numbers of
  /// the target, 1 without a target) or, for classes with weights, times the sum of the weights of
  /// the targets that count. `Criterion` has checked that these fit together:
  ///
  ///   classes          output floating [n, C], target int64 [n], or the output's type [n, C] where
  ///                    it takes probabilities; the options' class_dim is used up
  ///   events, numbers  output and target floating, of the same shape and type
  ///   none             output floating [], target undefined
  at::Tensor (*reduced)(const at::Tensor& output, const at::Tensor& target, std::int64_t reduction,
                        const LossOptions& options) = nullptr;
};

/// All losses, in the order in which recipes list them.
std::span<const LossFunction> loss_functions();

/// The loss `name`. Throws UserError, listing all, if it is unknown.
const LossFunction& loss_function(std::string_view name);

std::vector<std::string> loss_names();

}  // namespace decent
