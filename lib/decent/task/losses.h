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

/// What a loss compares the model's output with. Metrics go with these.
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
  std::int64_t class_dim = -1;       // classes: of the output
  double focal_gamma = 2;            // focal
  /// Of each class, floating [C]; undefined: all alike. Only for rows that take weights.
  at::Tensor weights = {};
};

/// A row of the table.
struct LossFunction {
  std::string_view name;  // as model.loss has it
  TargetKind target = TargetKind::numbers;
  /// What the loss applies to the output before it compares. A model that ends with it would have
  /// it twice: see probabilities.h.
  LossActivation activation = LossActivation::none;
  /// Whether zeros are what a model gives that knows nothing. As log-probabilities they would say
  /// that every class is certain.
  bool zeros_know_nothing = true;
  /// Of classes: whether targets may be the probabilities of all classes.
  bool takes_probabilities = false;
  /// Of classes: whether each may have a weight.
  bool takes_weights = false;

  /// What makes the loss of this batch mean nothing, though PyTorch computes it: a sentence; empty
  /// where all is well. Null: nothing does.
  std::string (*doubt)(const at::Tensor& output, const at::Tensor& target) = nullptr;
  /// The loss as a scalar with gradient. `reduction` is one of at::Reduction: Mean, or Sum, which
  /// is the mean times the number of elements that count: targets that are not ignored, numbers of
  /// the target, 1 where there is none; of classes with weights, times the sum of the weights of
  /// the targets that count. `Criterion` has checked that these fit together:
  ///
  ///   classes          output floating [n, C], target int64 [n], or the output's type [n, C] where
  ///                    it takes probabilities; the options' class_dim is used up
  ///   events, numbers  output and target floating, of the same shape and type
  ///   none             output floating [], target undefined
  at::Tensor (*reduced)(const at::Tensor& output, const at::Tensor& target, std::int64_t reduction,
                        const LossOptions& options) = nullptr;
};

/// All of them, in the order in which recipes list them.
std::span<const LossFunction> loss_functions();

/// The one of that name. Throws UserError for an unknown one, listing all.
const LossFunction& loss_function(std::string_view name);

std::vector<std::string> loss_names();

}  // namespace decent
