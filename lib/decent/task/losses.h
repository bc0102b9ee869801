#pragma once
// The losses of model.loss: each is a row of the table in losses.cpp, and nothing else names one
// or its options.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
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

/// The keys of the recipe's section `model` that change all losses of classes.
struct ClassOptions {
  std::int64_t ignore_index = -100;  // targets of this class do not count
  std::int64_t class_dim = -1;       // dimension of the classes in the output
  /// A weight for each class, floating [C]; undefined: all are 1. Only for rows that take weights.
  at::Tensor weights = {};
};

/// The loss as a scalar with gradient. `reduction` is one of at::Reduction: Mean, or Sum, which is
/// the mean times the number of elements that count (targets that are not ignored, numbers of the
/// target, 1 without a target) or, for classes with weights, times the sum of the weights of the
/// targets that count. `Criterion` has checked that these fit together:
///
///   classes          output floating [n, C], target int64 [n], or the output's type [n, C] where
///                    it takes probabilities; class_dim is used up
///   events, numbers  output and target floating, of the same shape and type
///   none             output floating [], target undefined
using ReducedLoss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target,
                                             std::int64_t reduction, const ClassOptions& classes)>;

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
  /// Its own options: further keys of the section.
  std::vector<OptionKey> keys = {};
  /// Throws UserError for options of another type or out of range. Options that only other losses
  /// take are not looked at.
  ReducedLoss (*make)(const Options& options) = nullptr;
};

/// All losses, in the order in which recipes list them.
const std::vector<LossFunction>& loss_functions();

/// The loss `name`. Throws UserError, listing all, if it is unknown.
const LossFunction& loss_function(std::string_view name);

}  // namespace decent
